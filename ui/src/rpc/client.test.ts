import { describe, expect, test } from "vitest";

import { createCall, RpcFault } from "./client";
import type { UiReply, UiRequest } from "./generated";

function over(reply: UiReply | Error) {
  const requests: UiRequest[] = [];
  const call = createCall({
    request(request) {
      requests.push(request);
      return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply);
    },
  });
  return { call, requests };
}

describe("the client", () => {
  test("sends parameters only where there are some", async () => {
    const none = over({ ok: { method: "ask_hidden" } });
    await expect(none.call("ask_hidden")).resolves.toBeUndefined();
    expect(none.requests).toEqual([{ method: "ask_hidden" }]);

    const some = over({ ok: { method: "propose", result: "a_1" } });
    await expect(some.call("propose", { change: { change: "resume" } })).resolves.toBe("a_1");
    expect(some.requests).toEqual([{ method: "propose", params: { change: { change: "resume" } } }]);
  });

  test("a fault keeps its code, field and hint", async () => {
    const { call } = over({
      err: { code: "not_found", message: "No such ask.", field: "ask_id", hint: "It may be pruned." },
    });
    const fault = await call("ask", { ask_id: "a_1" }).catch((thrown: unknown) => thrown);
    expect(fault).toBeInstanceOf(RpcFault);
    expect(fault).toMatchObject({
      code: "not_found",
      message: "No such ask.",
      field: "ask_id",
      hint: "It may be pruned.",
    });
  });

  test("an answer to something else is a fault", async () => {
    const { call } = over({ ok: { method: "narrow" } });
    await expect(call("overview")).rejects.toMatchObject({ code: "internal" });
  });

  test("no answer at all is a fault, and says that nothing was decided", async () => {
    const { call } = over(new Error("the pipe broke"));
    const fault = await call("overview").catch((thrown: unknown) => thrown);
    expect(fault).toBeInstanceOf(RpcFault);
    expect((fault as RpcFault).hint).toContain("the pipe broke");
  });
});
