import { call, type Change } from "../../rpc";
import { router } from "../../state/router.svelte";

/**
 * Asks for a change that widens what agents may do. It is decided on the native bar like any request,
 * so the window goes there. Throws what the supervisor says against it.
 */
export async function propose(change: Change): Promise<void> {
  const page = router.page;
  const ask = await call("propose", { change });
  router.proposed = { ask, page };
  router.showAsk(ask);
}
