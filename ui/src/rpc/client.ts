import type { ErrorCode, Fault, UiReply, UiRequest, UiResponse } from "./generated";
import type { Transport } from "./transport";

export type Method = UiRequest["method"];

/** A method's parameters, or nothing. */
export type Params<M extends Method> =
  Extract<UiRequest, { method: M }> extends { params: infer P } ? P : undefined;

/** A method's result, or nothing. */
export type Result<M extends Method> =
  Extract<UiResponse, { method: M }> extends { result: infer R } ? R : undefined;

type Arguments<M extends Method> = Params<M> extends undefined ? [] : [params: Params<M>];

/** A typed error from the supervisor, or about reaching it. */
export class RpcFault extends Error {
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly hint: string | undefined;

  constructor(fault: Fault) {
    super(fault.message);
    this.name = "RpcFault";
    this.code = fault.code;
    this.field = fault.field;
    this.hint = fault.hint;
  }

  /** Whatever was thrown, as a fault. */
  static from(thrown: unknown): RpcFault {
    if (thrown instanceof RpcFault) return thrown;
    const detail = thrown instanceof Error ? thrown.message : String(thrown);
    return new RpcFault({
      code: "internal",
      message: "The supervisor did not answer.",
      hint: `Nothing was decided. If it stays so, restart Bodyguard. (${detail})`,
    });
  }
}

export type Call = <M extends Method>(method: M, ...args: Arguments<M>) => Promise<Result<M>>;

/** Makes the typed call over a transport. */
export function createCall(transport: Pick<Transport, "request">): Call {
  return async (method, ...args) => {
    const request = (args.length === 0 ? { method } : { method, params: args[0] }) as UiRequest;
    let reply: UiReply;
    try {
      reply = await transport.request(request);
    } catch (thrown) {
      throw RpcFault.from(thrown);
    }
    return unwrap(method, reply);
  };
}

function unwrap<M extends Method>(method: M, reply: UiReply): Result<M> {
  if ("err" in reply) throw new RpcFault(reply.err);
  if (reply.ok.method !== method) {
    throw new RpcFault({ code: "internal", message: `Asked for ${method}, got ${reply.ok.method}.` });
  }
  // The method names the variant, and the variant has the result.
  return ("result" in reply.ok ? reply.ok.result : undefined) as Result<M>;
}
