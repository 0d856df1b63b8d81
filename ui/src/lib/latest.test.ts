import { expect, test } from "vitest";

import { Latest } from "./latest";

test("values go one after the other, and the last one always goes", async () => {
  const sent: number[] = [];
  let release: () => void = () => undefined;
  const latest = new Latest<number>((value) => {
    sent.push(value);
    return new Promise((resolve) => (release = resolve));
  });
  latest.send(1);
  latest.send(2);
  latest.send(3);
  expect(sent).toEqual([1]);
  release();
  await Promise.resolve();
  await Promise.resolve();
  expect(sent).toEqual([1, 3]);
  release();
  await new Promise((resolve) => setTimeout(resolve));
  latest.send(4);
  expect(sent).toEqual([1, 3, 4]);
});
