// Lists are drawn as windows: fixed row height, only what is in view and a little more.

export interface Span {
  /** First row. */
  from: number;
  /** One past the last row. */
  to: number;
}

/** The rows to draw for a scroll position. */
export function visibleRows(
  scrollTop: number,
  viewHeight: number,
  rowHeight: number,
  count: number,
  overscan = 6,
): Span {
  if (count <= 0 || rowHeight <= 0) return { from: 0, to: 0 };
  const first = Math.floor(Math.max(0, scrollTop) / rowHeight);
  const last = Math.ceil((Math.max(0, scrollTop) + Math.max(0, viewHeight)) / rowHeight);
  const from = Math.min(Math.max(0, first - overscan), count);
  const to = Math.max(from, Math.min(count, last + overscan));
  return { from, to };
}

/** Where to scroll so that a row is whole in view; unchanged if it is already. */
export function scrollToRow(scrollTop: number, viewHeight: number, rowHeight: number, row: number): number {
  const top = row * rowHeight;
  if (top < scrollTop) return top;
  const bottom = top + rowHeight;
  return bottom > scrollTop + viewHeight ? Math.max(0, bottom - viewHeight) : scrollTop;
}

/** The pages that hold some rows. */
export function pagesFor(span: Span, pageSize: number): number[] {
  if (span.to <= span.from) return [];
  const first = Math.floor(span.from / pageSize);
  const last = Math.floor((span.to - 1) / pageSize);
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** Where a key moves the cursor of a list; undefined if the key isn't the list's. */
export function moveCursor(key: string, at: number, count: number, perPage: number): number | undefined {
  if (count === 0) return undefined;
  const clamp = (row: number) => Math.min(count - 1, Math.max(0, row));
  switch (key) {
    case "ArrowDown":
    case "j":
      return clamp(at + 1);
    case "ArrowUp":
    case "k":
      return at < 0 ? count - 1 : clamp(at - 1);
    case "PageDown":
      return clamp(at + Math.max(1, perPage));
    case "PageUp":
      return clamp(at - Math.max(1, perPage));
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return undefined;
  }
}
