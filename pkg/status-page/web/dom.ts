/** What an element is made with. Texts become text, never markup: names and messages come from outside. */
export interface Props {
  readonly class?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly onClick?: () => void;
}

export type Child = Node | string | undefined;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (props.class !== undefined) made.className = props.class;
  if (props.text !== undefined) made.textContent = props.text;
  for (const [name, value] of Object.entries(props.attributes ?? {})) made.setAttribute(name, value);
  if (props.onClick !== undefined) made.addEventListener('click', props.onClick);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

export function button(
  className: string,
  text: string,
  onClick: () => void,
  attributes: Props['attributes'] = {},
): HTMLButtonElement {
  return element('button', { class: className, text, attributes: { type: 'button', ...attributes }, onClick });
}

/** A link in words, which keeps focus by its key when it is made anew. */
export function link(key: string, text: string, title: string, onClick: () => void): HTMLButtonElement {
  return button('link name', text, onClick, { title, 'data-focus': key });
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | number>>,
): SVGElementTagNameMap[K] {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

export function byID(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found;
}

export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

/** Keeps the children of an element in step with a list: each item keeps its element, and so focus, as long as it is there. */
export class KeyedChildren<T> {
  readonly #parent: Element;
  readonly #make: (item: T) => Element;
  #shown = new Map<string, { readonly item: T; readonly element: Element }>();

  /** `make` is called for each item that is new or another than before. */
  constructor(parent: Element, make: (item: T) => Element) {
    this.#parent = parent;
    this.#make = make;
  }

  show(items: readonly (readonly [key: string, item: T])[]): void {
    const before = this.#shown;
    const shown: typeof before = new Map();
    for (const [key, item] of items) {
      const known = before.get(key);
      shown.set(key, known !== undefined && known.item === item ? known : { item, element: this.#remake(known, item) });
    }
    for (const [key, { element: old }] of before) if (!shown.has(key)) old.remove();
    this.#shown = shown;
    let next = this.#parent.firstElementChild;
    for (const { element: wanted } of shown.values()) {
      if (wanted === next) next = next.nextElementSibling;
      else this.#parent.insertBefore(wanted, next);
    }
  }

  /** What has focus in an element that is made anew keeps it. */
  #remake(known: { readonly element: Element } | undefined, item: T): Element {
    const made = this.#make(item);
    if (known === undefined) return made;
    const focused = known.element.contains(document.activeElement)
      ? document.activeElement?.getAttribute('data-focus')
      : undefined;
    known.element.replaceWith(made);
    if (typeof focused === 'string') made.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
    return made;
  }
}
