import type { Attention } from '../../fleet/attention.ts';
import type { Sections } from '../view.ts';
import { element, button, link, type Child } from './dom.ts';
import { holdersOf, isStandby } from './state.ts';
import { ageText, countText, plural, untilOf } from './texts.ts';

export type OpenMachine = (key: string) => void;

/** A mark with a colour and a shape, before a word that says the same. */
export function mark(attention: Attention): HTMLElement {
  return element('span', { class: `mark ${attention}`, attributes: { 'aria-hidden': 'true' } });
}

/** A button that looks like a link, with the name of a Machine. */
export function machineButton(key: string, open: OpenMachine): HTMLElement {
  return link(key, key.replace(/^[^/]*\//, ''), key, () => open(key));
}

/** An age that goes on counting. */
export function age(timestamp: string | undefined, nowMs: number): HTMLElement {
  const attributes = timestamp === undefined ? {} : { datetime: timestamp, 'data-since': timestamp, title: timestamp };
  return element('time', { text: ageText(timestamp, nowMs), attributes });
}

/** The time until something, which goes on counting. */
function until(timestamp: string, nowMs: number): HTMLElement {
  return element('time', {
    text: untilOf(timestamp, nowMs),
    attributes: { datetime: timestamp, 'data-until': timestamp, title: timestamp },
  });
}

/** Brings all ages below an element up to date. */
export function refreshAges(parent: ParentNode, nowMs: number): void {
  for (const one of parent.querySelectorAll<HTMLElement>('[data-since], [data-until]')) {
    const { since, until: end } = one.dataset;
    const text = end === undefined ? ageText(since, nowMs) : untilOf(end, nowMs);
    if (one.textContent !== text) one.textContent = text;
  }
}

export function cell(label: string, ...children: readonly Child[]): HTMLElement {
  return element('td', { attributes: { 'data-label': label } }, ...children);
}

export function statusCell(attention: Attention, ...lines: readonly Child[]): HTMLElement {
  return cell('Status', element('div', { class: 'status' }, mark(attention), element('div', {}, ...lines)));
}

export function nothing(text: string): HTMLElement {
  return element('p', { class: 'empty muted', text });
}

/** How many items of a list are shown before somebody asks for all. */
const SHORT = 8;

/** A list of which only the first items are shown at first. */
export class ShortList {
  readonly #parent: HTMLElement;
  readonly #what: string;
  #isWhole = false;
  #items: readonly HTMLElement[] = [];

  constructor(parent: HTMLElement, what: string) {
    this.#parent = parent;
    this.#what = what;
  }

  show(items: readonly HTMLElement[]): void {
    this.#items = items;
    this.#draw();
  }

  #draw(): void {
    const focused = this.#parent.contains(document.activeElement)
      ? document.activeElement?.getAttribute('data-focus')
      : undefined;
    const shown = this.#isWhole ? this.#items : this.#items.slice(0, SHORT);
    const rest = this.#items.length - SHORT;
    const toggle = (): void => {
      this.#isWhole = !this.#isWhole;
      this.#draw();
    };
    const text = this.#isWhole ? 'Show fewer' : `Show all ${countText(this.#items.length)} ${this.#what}`;
    const more = button('button', text, toggle, { 'aria-expanded': String(this.#isWhole), 'data-focus': 'more' });
    this.#parent.replaceChildren(element('ul', { class: 'list' }, ...shown), ...(rest > 0 ? [more] : []));
    if (typeof focused !== 'string') return;
    this.#parent.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }
}

/** An item of a list: a line with a mark, and what is said below it. */
export function item(attention: Attention, head: readonly Child[], ...body: readonly Child[]): HTMLElement {
  return element('li', { class: 'item' }, element('div', { class: 'item-head' }, mark(attention), ...head), ...body);
}

export function drainItems({ drains }: Sections, nowMs: number, open: OpenMachine): readonly HTMLElement[] {
  return drains
    .toSorted((a, b) => Number(b.isBlocked) - Number(a.isBlocked) || (a.since < b.since ? -1 : 1))
    .map((drain) =>
      item(
        drain.isBlocked ? 'attention' : 'progressing',
        [
          machineButton(drain.machine, open),
          element('span', { class: 'chip', text: drain.isBlocked ? 'blocked' : drain.purpose }),
          element('span', { class: 'spacer' }),
          element('span', {
            class: 'muted',
            text: drain.remainingPods === undefined ? '' : `${plural(drain.remainingPods, 'pod')} left`,
          }),
          age(drain.since, nowMs),
        ],
        element('p', { class: 'free', text: drain.message ?? `Draining for ${drain.purpose}.` }),
        drain.podsDeletedAt === undefined
          ? undefined
          : element('p', { class: 'muted' }, 'Remaining pods are deleted ', until(drain.podsDeletedAt, nowMs), '.'),
        drain.nextAttempt === undefined
          ? undefined
          : element('p', { class: 'muted' }, `Attempt ${drain.failures + 1} `, until(drain.nextAttempt, nowMs), '.'),
      ),
    );
}

/** Calls to providers that have failed and are repeated, and classes of which no VM can be had. */
export function retryItems({ retries, exhausted }: Sections, nowMs: number, open: OpenMachine): readonly HTMLElement[] {
  const itemOf = (
    { message = '', failures, nextAttempt }: { message?: string; failures: number; nextAttempt: string },
    name: HTMLElement,
    chip: string,
  ): HTMLElement =>
    item(
      'attention',
      [
        name,
        element('span', { class: 'chip', text: chip }),
        element('span', { class: 'spacer' }),
        element('span', { class: 'muted' }, `attempt ${failures + 1} `, until(nextAttempt, nowMs)),
      ],
      element('p', { class: 'free', text: message }),
    );
  return [
    ...exhausted.map((one) =>
      itemOf(one, element('span', { class: 'name', text: one.machineClass }), 'ResourceExhausted'),
    ),
    ...retries.map((one) => itemOf(one, machineButton(one.machine, open), `${one.call}: ${one.code ?? 'failed'}`)),
  ];
}

/** That others know what this process does not. */
export function standbyText(sections: Sections, what: string): string | undefined {
  if (!isStandby(sections)) return undefined;
  const holders = holdersOf(sections);
  const leader = holders.length === 0 ? 'there is no leader at present' : `open the page of ${holders.join(' and ')}`;
  return `${what} are shown by the leader only: ${leader}.`;
}

const LEADER_TEXTS: Readonly<Record<Sections['leaders'][number]['state'], string>> = {
  leading: 'leading',
  'standing-by': 'standing by',
  suspended: 'leadership suspended',
  ended: 'stopping',
  always: 'leading (leader election is off)',
};
const DRIVER_TEXTS = {
  connected: 'connected',
  'not-connected': 'not connected',
  unknown: 'not connected yet',
} as const;
const CLUSTER_TEXTS = {
  reachable: 'reachable',
  'not-reached-yet': 'not reached yet',
  failing: 'not answering',
  outage: 'outage',
} as const;

/** Leaders, clusters, drivers, failed checks and alerts: how the manager itself is. */
export function processFacts(sections: Sections, nowMs: number): readonly HTMLElement[] {
  const { leaders, clusters, drivers, checks, alerts } = sections;
  const leaderRows = leaders.map(({ lease, state, holder, since, trouble }) =>
    fact(
      state === 'leading' || state === 'always' || (state === 'standing-by' && trouble === undefined)
        ? 'ok'
        : 'attention',
      lease,
      LEADER_TEXTS[state],
      [
        ...(since === undefined ? [] : ['for ', age(since, nowMs)]),
        ...(holder === undefined || state === 'leading' ? [] : [`held by ${holder}`]),
        ...(trouble === undefined ? [] : [` ${trouble}`]),
      ],
    ),
  );
  const clusterRows = clusters.map(({ cluster, state, since, text }) =>
    fact(
      state === 'reachable' ? 'ok' : state === 'not-reached-yet' ? 'progressing' : 'attention',
      cluster,
      CLUSTER_TEXTS[state],
      [...(since === undefined ? [] : ['since ', age(since, nowMs), ' ago. ']), ...(text === undefined ? [] : [text])],
    ),
  );
  const driverRows = drivers.map(({ provider, state, running }) =>
    fact(
      state === 'connected' ? 'ok' : state === 'unknown' ? 'progressing' : 'attention',
      provider,
      DRIVER_TEXTS[state],
      [running === 0 ? '' : `${plural(running, 'call')} in progress`],
    ),
  );
  const checkRows = checks.flatMap(({ name, state, detail = '' }) =>
    state === 'ok' ? [] : [fact('attention', name, state, [detail])],
  );
  const alertRows = alerts.map(({ alert, after, runbook, about }) =>
    fact('attention', alert, after === '0s' ? 'fires now' : `fires if this lasts ${after}`, [
      `${about.join('; ')}${about.length === 0 ? '' : '. '}See docs/runbooks/${runbook}.md`,
    ]),
  );
  return [
    ...group('Leases', leaderRows, 'This process applies for no Lease.'),
    ...group('Clusters and outages', clusterRows, 'No cluster is probed yet.'),
    ...group('Drivers', driverRows, 'This process calls no drivers.'),
    ...(checkRows.length === 0 ? [] : group('Checks', checkRows, '')),
    ...(alertRows.length === 0 ? [] : group('Alerts', alertRows, '')),
  ];
}

function group(title: string, rows: readonly HTMLElement[], none: string): HTMLElement[] {
  const list = rows.length === 0 ? nothing(none) : element('ul', { class: 'facts' }, ...rows);
  return [element('h3', { text: title }), list];
}

function fact(attention: Attention, name: string, state: string, more: readonly (Node | string)[]): HTMLElement {
  return element(
    'li',
    {},
    mark(attention),
    element('span', { class: 'name', text: name }),
    element('span', { class: `state ${attention}`, text: state }),
    element('span', { class: 'more muted free' }, ...more),
  );
}
