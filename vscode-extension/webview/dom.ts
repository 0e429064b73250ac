// A few lines in place of a framework.

type Attributes = { role?: string } & { [A in `data-${string}` | `aria-${string}`]?: string };
type Child = Node | string | false | undefined | "";

/** An element: `h("button.primary", { onclick }, "Send")`. Strings become text, never HTML. */
export function h<K extends keyof HTMLElementTagNameMap>(
  selector: K | `${K}.${string}`,
  properties: Partial<Omit<HTMLElementTagNameMap[K], "style">> & Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [tag = "div", ...classes] = selector.split(".");
  const element = document.createElement(tag) as HTMLElementTagNameMap[K];
  element.classList.add(...classes);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (/^(data-|aria-|role$)/.test(name)) element.setAttribute(name, String(value));
    else (element as unknown as Record<string, unknown>)[name] = value;
  }
  element.append(...children.filter((child): child is Node | string => child !== false && child !== undefined && child !== ""));
  return element;
}

/**
 * Makes `parent`'s children the nodes of `items`, in order. Nodes are kept by key; `draw` gets the old node and what it showed, and
 * is called only for items that are another object than before.
 */
export class Keyed<T> {
  private shown = new Map<string, { item: T; node: HTMLElement }>();

  constructor(
    private readonly parent: HTMLElement,
    private readonly keyOf: (item: T) => string,
    private readonly draw: (item: T, old: HTMLElement | undefined) => HTMLElement,
  ) {}

  update(items: readonly T[]): void {
    const next = new Map<string, { item: T; node: HTMLElement }>();
    let place: ChildNode | null = this.parent.firstChild;
    for (const item of items) {
      const key = this.keyOf(item);
      const old = this.shown.get(key);
      const node = old && old.item === item ? old.node : this.draw(item, old?.node);
      if (old && old.node !== node) {
        if (place === old.node) place = old.node.nextSibling;
        old.node.replaceWith(node);
      }
      next.set(key, { item, node });
      if (node === place) place = place.nextSibling;
      else if (node.parentNode !== this.parent || node.nextSibling !== place) this.parent.insertBefore(node, place);
    }
    for (const [key, { node }] of this.shown) if (!next.has(key)) node.remove();
    this.shown = next;
  }

  clear(): void {
    this.update([]);
  }
}
