import type { Attention } from '../../fleet/attention.ts';
import type { MachineView } from '../view.ts';
import { element, KeyedChildren, setText, button } from './dom.ts';
import { age, machineButton, nothing, type OpenMachine, cell, statusCell } from './lists.ts';
import { EVERYTHING, type MachineQuery, PAGE_SIZE, selectMachines, type SortKey } from './machine-list.ts';
import { ATTENTION_TEXTS, countText, plural } from './texts.ts';

const COLUMNS: readonly { readonly title: string; readonly sort?: SortKey }[] = [
  { title: 'Name', sort: 'name' },
  { title: 'Status', sort: 'attention' },
  { title: 'Waiting for' },
  { title: 'Since', sort: 'since' },
  { title: 'Node', sort: 'node' },
  { title: 'VM' },
  { title: 'MachineDeployment', sort: 'fleet' },
];
const FILTERS: readonly (Attention | undefined)[] = [undefined, 'attention', 'progressing', 'ok'];
/** Changes of the search are looked up after this time. */
const TYPED_MS = 120;

/** All Machines, a page at a time: searched, filtered and sorted in the browser. */
export class MachineTable {
  readonly #open: OpenMachine;
  readonly #children: KeyedChildren<MachineView>;
  readonly #search: HTMLInputElement;
  readonly #phase: HTMLSelectElement;
  readonly #filters = new Map<Attention | undefined, HTMLButtonElement>();
  readonly #fleet: HTMLButtonElement;
  readonly #heads = new Map<SortKey, HTMLElement>();
  readonly #table: HTMLElement;
  readonly #empty = nothing('');
  readonly #found: HTMLElement;
  readonly #position = element('span', { class: 'muted' });
  readonly #previous: HTMLButtonElement;
  readonly #next: HTMLButtonElement;
  #machines: ReadonlyMap<string, MachineView> = new Map();
  #query: MachineQuery = EVERYTHING;
  #nowMs = 0;
  #typing: ReturnType<typeof setTimeout> | undefined;

  constructor(parent: HTMLElement, open: OpenMachine) {
    this.#open = open;
    this.#search = element('input', {
      attributes: {
        type: 'search',
        placeholder: 'Search',
        'aria-label': 'Search machines',
        spellcheck: 'false',
        autocomplete: 'off',
      },
    });
    this.#search.addEventListener('input', () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.#ask({ words: this.#search.value }), TYPED_MS);
    });
    this.#phase = element('select', { attributes: { 'aria-label': 'Phase' } });
    this.#phase.addEventListener('change', () =>
      this.#ask({ phase: this.#phase.value === '' ? undefined : this.#phase.value }),
    );
    this.#fleet = button('button', '', () => {
      this.#ask({ fleet: undefined });
      this.#search.focus();
    });
    for (const attention of FILTERS) {
      const text = attention === undefined ? 'All' : ATTENTION_TEXTS[attention];
      this.#filters.set(
        attention,
        button('segment', text, () => this.#ask({ attention })),
      );
    }
    this.#found = element('p', { class: 'sr-only', attributes: { role: 'status' } });
    const body = element('tbody');
    this.#children = new KeyedChildren(body, (machine) => this.#row(machine));
    this.#table = element(
      'table',
      { class: 'rows machines', attributes: { 'aria-labelledby': 'machines-title' } },
      element('thead', {}, element('tr', {}, ...COLUMNS.map((column) => this.#head(column)))),
      body,
    );
    this.#previous = this.#pageButton('Previous', -1);
    this.#next = this.#pageButton('Next', 1);
    parent.append(
      element(
        'div',
        { class: 'tools' },
        this.#search,
        element(
          'div',
          { class: 'segments', attributes: { role: 'group', 'aria-label': 'State' } },
          ...this.#filters.values(),
        ),
        this.#phase,
        this.#fleet,
      ),
      this.#found,
      this.#table,
      this.#empty,
      element(
        'nav',
        { class: 'pager', attributes: { 'aria-label': 'Pages of machines' } },
        this.#previous,
        this.#position,
        this.#next,
      ),
    );
  }

  show(machines: ReadonlyMap<string, MachineView>, nowMs: number): void {
    this.#machines = machines;
    this.#nowMs = nowMs;
    this.#draw();
  }

  /** Shows only some Machines, and moves focus to them. */
  choose(query: Partial<MachineQuery>): void {
    this.#search.value = '';
    this.#ask({ ...EVERYTHING, ...query });
    const section = document.getElementById('machines');
    section?.scrollIntoView();
    section?.focus({ preventScroll: true });
  }

  #ask(query: Partial<MachineQuery>): void {
    this.#query = { ...this.#query, page: 0, ...query };
    this.#draw();
    setText(this.#found, `${plural(selectMachines(this.#machines.values(), this.#query).found, 'machine')} found`);
  }

  #draw(): void {
    const { rows, found, page, pages } = selectMachines(this.#machines.values(), this.#query);
    this.#query = { ...this.#query, page };
    this.#children.show(rows.map((machine) => [machine.key, machine]));
    const { attention, fleet, sort, isDescending } = this.#query;
    for (const [of, filter] of this.#filters) filter.setAttribute('aria-pressed', String(of === attention));
    this.#fleet.hidden = fleet === undefined;
    setText(this.#fleet, `${fleet?.replace(/^[^/]*\//, '') ?? ''} ✕`);
    this.#fleet.setAttribute('aria-label', `Show machines of all MachineDeployments, not only of ${fleet ?? ''}`);
    this.#showPhases();
    for (const [key, head] of this.#heads) {
      head.setAttribute('aria-sort', key === sort ? (isDescending ? 'descending' : 'ascending') : 'none');
    }
    this.#table.hidden = rows.length === 0;
    this.#empty.hidden = rows.length > 0;
    setText(this.#empty, this.#machines.size === 0 ? 'No machines.' : 'No machine matches.');
    const first = page * PAGE_SIZE;
    setText(
      this.#position,
      `${countText(Math.min(first + 1, found))}–${countText(first + rows.length)} of ${countText(found)}`,
    );
    this.#previous.disabled = page === 0;
    this.#next.disabled = page >= pages - 1;
  }

  #showPhases(): void {
    const wanted = this.#query.phase ?? '';
    const phases = [...new Set([...this.#machines.values()].map(({ phase }) => phase)), wanted].filter(
      (one) => one !== '',
    );
    const options = ['', ...[...new Set(phases)].toSorted()];
    const shown = [...this.#phase.options].map(({ value }) => value);
    if (shown.join('\n') !== options.join('\n')) {
      this.#phase.replaceChildren(
        ...options.map((value) =>
          element('option', { text: value === '' ? 'All phases' : value, attributes: { value } }),
        ),
      );
    }
    this.#phase.value = wanted;
  }

  #row(machine: MachineView): HTMLElement {
    const { key, namespace, attention, phase, reason, message, waitingFor, since, node, providerID, fleet } = machine;
    const more = reason === phase ? '' : reason;
    return element(
      'tr',
      { attributes: { 'data-key': key } },
      cell(
        'Name',
        machineButton(key, this.#open),
        element('div', { class: 'muted small only-narrow', text: namespace }),
      ),
      statusCell(
        attention,
        element('span', { text: phase }),
        element('div', { class: `small ${attention === 'ok' ? 'muted' : attention}`, text: more }),
      ),
      cell(
        'Waiting for',
        ...(attention === 'ok'
          ? [element('span', { class: 'muted', text: '–' })]
          : [
              waitingFor === undefined ? undefined : element('p', { class: 'free', text: waitingFor }),
              element('p', { class: 'free muted small clamp', text: message, attributes: { title: message } }),
            ]),
      ),
      cell('Since', age(since, this.#nowMs)),
      cell('Node', cut(node)),
      cell('VM', cut(providerID)),
      cell('MachineDeployment', cut(fleet?.replace(/^[^/]*\//, ''))),
    );
  }

  #head({ title, sort }: (typeof COLUMNS)[number]): HTMLElement {
    if (sort === undefined) return element('th', { text: title, attributes: { scope: 'col' } });
    const sorted = button('sort', title, () => {
      const isDescending = this.#query.sort === sort && !this.#query.isDescending;
      this.#ask({ sort, isDescending });
    });
    const head = element('th', { attributes: { scope: 'col' } }, sorted);
    this.#heads.set(sort, head);
    return head;
  }

  #pageButton(text: string, step: number): HTMLButtonElement {
    return button('button', text, () => this.#ask({ page: this.#query.page + step }));
  }
}

function cut(text: string | undefined): HTMLElement {
  return text === undefined
    ? element('span', { class: 'muted', text: '–' })
    : element('span', { class: 'cut', text, attributes: { title: text } });
}
