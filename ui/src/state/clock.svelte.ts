import { createSubscriber } from "svelte/reactivity";

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
});

/** The wall clock in milliseconds. Whatever reads it while it is drawn is drawn again each second. */
export function now(): number {
  subscribe();
  return Date.now();
}
