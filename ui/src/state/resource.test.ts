import { describe, expect, test } from "vitest";

import { PagedList } from "./paged.svelte";
import { Resource } from "./resource.svelte";

/** A back end whose answers come when the test says so. */
function slow() {
  const waiting: ((value: number) => void)[] = [];
  return {
    asked: () => waiting.length,
    fetch: () => new Promise<number>((resolve) => waiting.push(resolve)),
    answer: async (index: number, value: number) => {
      waiting[index]?.(value);
      await new Promise((resolve) => setTimeout(resolve));
    },
  };
}

describe("an answer kept fresh", () => {
  test("a flood of changes leads to one more request, and the newest answer stays", async () => {
    const backend = slow();
    const resource = new Resource(backend.fetch);
    const done = resource.refresh();
    for (let n = 0; n < 50; n += 1) void resource.refresh();
    expect(backend.asked()).toBe(1);
    await backend.answer(0, 1);
    expect(backend.asked()).toBe(2);
    await backend.answer(1, 2);
    await done;
    expect(backend.asked()).toBe(2);
    expect(resource.data).toBe(2);
  });

  test("nobody's answer isn't fetched", () => {
    const backend = slow();
    new Resource(backend.fetch).touch();
    expect(backend.asked()).toBe(0);
  });

  test("a fault keeps the answer before it, and goes with the next one", async () => {
    let fail = false;
    const resource = new Resource(() => (fail ? Promise.reject(new Error("gone")) : Promise.resolve(7)));
    await resource.refresh();
    fail = true;
    await resource.refresh();
    expect(resource.data).toBe(7);
    expect(resource.fault?.code).toBe("internal");
    fail = false;
    await resource.refresh();
    expect(resource.fault).toBeUndefined();
  });
});

describe("a window onto a list", () => {
  const asked: number[] = [];
  const fetch = (offset: number, limit: number) => {
    asked.push(offset);
    const items = Array.from({ length: limit }, (_, index) => offset + index);
    return Promise.resolve({ total: 100_000, offset, items });
  };
  const settle = () => new Promise((resolve) => setTimeout(resolve));

  test("fetches the pages in view and forgets those far away", async () => {
    const list = new PagedList(fetch);
    await list.refresh();
    expect(list.total).toBe(100_000);
    list.want({ from: 0, to: 30 });
    list.want({ from: 95, to: 120 });
    await settle();
    expect(asked).toEqual([0, 100]);
    expect(list.at(119)).toBe(119);
    for (let page = 2; page < 30; page += 1) list.want({ from: page * 100, to: page * 100 + 20 });
    await settle();
    expect(list.at(2_905)).toBe(2_905);
    expect(list.at(5)).toBeUndefined();
  });

  test("a failing back end isn't asked over and over", async () => {
    let tries = 0;
    const list = new PagedList<number>(() => {
      tries += 1;
      return Promise.reject(new Error("gone"));
    });
    await list.refresh();
    await settle();
    expect(tries).toBe(1);
    expect(list.fault?.code).toBe("internal");
  });
});
