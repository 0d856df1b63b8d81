/**
 * Tells whether everything in a view has been within reach of the eye sideways: at once where lines wrap,
 * and otherwise when it has been scrolled to its right end. Returns how to stop.
 */
export function watchSideways(
  view: HTMLElement,
  wrap: boolean,
  onwhole: ((whole: boolean) => void) | undefined,
): () => void {
  if (!onwhole) return () => undefined;
  const look = (): void => {
    if (wrap || view.scrollLeft + view.clientWidth >= view.scrollWidth - 1) onwhole(true);
  };
  onwhole(false);
  look();
  const observer = new ResizeObserver(look);
  observer.observe(view);
  view.addEventListener("scroll", look, { passive: true });
  return () => {
    observer.disconnect();
    view.removeEventListener("scroll", look);
  };
}
