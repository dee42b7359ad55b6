import type { FleetView, Sections } from '../view.ts';
import { element, KeyedChildren, button, link } from './dom.ts';
import { age, nothing, cell, item, statusCell } from './lists.ts';
import { classOfPhase, phasesOf } from './phase-bands.ts';
import { ATTENTION_TEXTS, countText, plural } from './texts.ts';

const ORDER = { attention: 0, progressing: 1, ok: 2 } as const;
/** More are shown when somebody asks. */
const SHORT = 20;

/** The MachineDeployments, with a bar of the phases of their Machines. */
export class FleetTable {
  readonly #parent: HTMLElement;
  readonly #children: KeyedChildren<FleetView>;
  readonly #more: HTMLButtonElement;
  readonly #table: HTMLElement;
  readonly #empty = nothing('No MachineDeployments.');
  #fleets: readonly FleetView[] = [];
  #isWhole = false;
  #nowMs = 0;

  /** `choose` shows the Machines of one. */
  constructor(parent: HTMLElement, choose: (fleet: string) => void) {
    this.#parent = parent;
    const body = element('tbody');
    this.#children = new KeyedChildren(body, (fleet) => rowOf(fleet, this.#nowMs, choose));
    const head = ['Name', 'Ready', 'Machines', 'Status', 'Revision', 'Age'];
    this.#table = element(
      'table',
      { class: 'rows fleets', attributes: { 'aria-labelledby': 'fleets-title' } },
      element(
        'thead',
        {},
        element('tr', {}, ...head.map((text) => element('th', { text, attributes: { scope: 'col' } }))),
      ),
      body,
    );
    this.#more = button('button', '', () => {
      this.#isWhole = !this.#isWhole;
      this.#draw();
    });
    parent.append(this.#empty, this.#table, this.#more);
  }

  show(fleets: readonly FleetView[], nowMs: number): void {
    this.#nowMs = nowMs;
    const before = new Map(this.#fleets.map((fleet) => [fleet.key, fleet]));
    // One that has not changed stays the same object, and its row is not made anew.
    this.#fleets = fleets.map((fleet) => {
      const known = before.get(fleet.key);
      return known !== undefined && JSON.stringify(known) === JSON.stringify(fleet) ? known : fleet;
    });
    this.#draw();
  }

  #draw(): void {
    const sorted = this.#fleets.toSorted(
      (a, b) => ORDER[a.attention] - ORDER[b.attention] || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0),
    );
    const shown = this.#isWhole ? sorted : sorted.slice(0, SHORT);
    this.#children.show(shown.map((fleet) => [`${fleet.kind}/${fleet.key}`, fleet]));
    this.#empty.hidden = sorted.length > 0;
    this.#table.hidden = sorted.length === 0;
    this.#more.hidden = sorted.length <= SHORT;
    this.#more.textContent = this.#isWhole ? 'Show fewer' : `Show all ${countText(sorted.length)}`;
    this.#parent.toggleAttribute('data-ready', true);
  }
}

function rowOf(fleet: FleetView, nowMs: number, choose: (fleet: string) => void): HTMLElement {
  const { key, kind, namespace, name, desired, ready, attention, revision, troubles, created, sets, inTrouble } = fleet;
  const shown = link(key, name, `Show the Machines of ${key}`, () => choose(key));
  const owner = kind === 'MachineSet' ? 'MachineSet' : namespace;
  const details =
    troubles.length > 0
      ? troubles.map(({ text }) => text)
      : [attention === 'ok' ? 'As requested' : ATTENTION_TEXTS[attention]];
  const older = sets.slice(1).map((set) => `${set.name}: ${set.ready}/${set.desired} ready`);
  return element(
    'tr',
    {},
    cell('Name', shown, element('div', { class: 'muted small', text: owner })),
    cell('Ready', element('span', { class: 'number', text: `${countText(ready)}/${countText(desired)}` })),
    cell('Machines', phaseBar(fleet)),
    statusCell(
      attention,
      ...[...details, ...older].map((text) => element('p', { class: 'free', text })),
      inTrouble === 0
        ? undefined
        : element('p', {
            class: 'small attention',
            text: `${plural(inTrouble, 'machine')} ${inTrouble === 1 ? 'needs' : 'need'} attention`,
          }),
    ),
    cell('Revision', element('span', { text: revision ?? '–' })),
    cell('Age', age(created, nowMs)),
  );
}

function phaseBar({ phases }: FleetView): HTMLElement {
  const order = phasesOf([{ at: '', phases }]);
  const text = order.map((phase) => `${countText(phases[phase] ?? 0)} ${phase}`).join(', ');
  const bar = element('div', {
    class: 'bar-of-phases',
    attributes: { role: 'img', 'aria-label': text === '' ? 'no Machines' : text, title: text },
  });
  for (const phase of order) {
    const part = element('span', { class: classOfPhase(phase) });
    part.style.flexGrow = String(phases[phase] ?? 0);
    bar.append(part);
  }
  return bar;
}

/** The rollouts that are not done, and what keeps them. */
export function rolloutItems(
  { fleets }: Pick<Sections, 'fleets'>,
  choose: (fleet: string) => void,
): readonly HTMLElement[] {
  return fleets
    .filter(({ rollout }) => rollout !== undefined && rollout.state !== 'done')
    .toSorted((a, b) => ORDER[a.attention] - ORDER[b.attention] || (a.key < b.key ? -1 : 1))
    .map((fleet) => {
      const { key, name, rollout, troubles } = fleet;
      const { state = 'waiting', text = '', updated = 0, available = 0, total = 0 } = rollout ?? {};
      const done = Math.min(updated, available);
      const progress = element('progress', {
        attributes: { max: String(Math.max(1, total)), value: String(done), 'aria-label': `Rollout of ${key}` },
      });
      const others = troubles.filter(({ isProgress }) => !isProgress);
      return item(
        fleet.attention,
        [
          link(key, name, key, () => choose(key)),
          state === 'late' ? element('span', { class: 'chip', text: 'too slow' }) : undefined,
          element('span', { class: 'spacer' }),
          element('span', {
            class: 'muted',
            text: `${countText(updated)} updated, ${countText(available)} available of ${countText(total)}`,
          }),
        ],
        progress,
        element('p', { class: 'free', text }),
        ...others.map(({ text: why }) => element('p', { class: 'free', text: why })),
      );
    });
}
