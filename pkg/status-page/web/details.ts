import type { MachineView, Sections } from '../view.ts';
import { element, button } from './dom.ts';
import { age, mark } from './lists.ts';
import { untilOf } from './texts.ts';

const PREFIX = '#machine/';

/** Everything about one Machine, in a dialog with an address of its own. */
export class Details {
  readonly #dialog: HTMLDialogElement;
  readonly #find: (key: string) => MachineView | undefined;
  readonly #body = element('div');
  readonly #title = element('h2', { attributes: { id: 'details-title', tabindex: '-1' } });
  #key: string | undefined;
  #shown = '';

  constructor(dialog: HTMLDialogElement, find: (key: string) => MachineView | undefined) {
    this.#dialog = dialog;
    this.#find = find;
    const close = button('button', 'Close', () => dialog.close());
    dialog.append(element('div', { class: 'dialog-head' }, this.#title, close), this.#body);
    dialog.addEventListener('close', () => {
      this.#key = undefined;
      if (location.hash.startsWith(PREFIX)) history.replaceState(null, '', location.pathname + location.search);
    });
    dialog.addEventListener('click', (event) => {
      // Outside of what the dialog contains.
      if (event.target === dialog) dialog.close();
    });
    addEventListener('hashchange', () => this.#openFromAddress());
  }

  open(key: string): void {
    location.hash = `${PREFIX}${encodeURIComponent(key)}`;
    if (this.#key !== key) this.#openFromAddress();
  }

  /** Shows the Machine that the address names, if it names one. */
  #openFromAddress(): void {
    if (!location.hash.startsWith(PREFIX)) {
      if (this.#dialog.open) this.#dialog.close();
      return;
    }
    this.#key = decoded(location.hash.slice(PREFIX.length));
    this.#shown = '';
  }

  show(sections: Sections, nowMs: number): void {
    if (this.#key === undefined && location.hash.startsWith(PREFIX)) this.#openFromAddress();
    const key = this.#key;
    if (key === undefined) return;
    const machine = this.#find(key);
    const text = JSON.stringify([machine, sections.drains.filter((drain) => drain.machine === key)]);
    if (!this.#dialog.open) this.#dialog.showModal();
    if (text === this.#shown) return;
    this.#shown = text;
    this.#title.textContent = key.replace(/^[^/]*\//, '');
    this.#body.replaceChildren(...(machine === undefined ? [goneText(key)] : factsOf(machine, sections, nowMs)));
  }
}

function goneText(key: string): HTMLElement {
  return element('p', { class: 'free', text: `Machine ${key} does not exist.` });
}

function factsOf(machine: MachineView, { drains }: Sections, nowMs: number): HTMLElement[] {
  const { key, namespace, fleet, set, phase, reason, attention, message, waitingFor, since, nextStep } = machine;
  const { created, node, providerID, work } = machine;
  const drain = drains.find((one) => one.machine === key);
  const { nextAttempt: attempt, failure } = work ?? {};
  const rows: [string, Node | string | undefined][] = [
    ['Reason', reason],
    ['Message', message],
    ['Waiting for', waitingFor ?? 'nothing'],
    ['Since', since === undefined ? undefined : element('span', {}, age(since, nowMs), ` (${since})`)],
    ['Next', nextStep],
    [
      'In progress',
      work?.running.map(({ activity, isQueued }) => (isQueued ? `${activity} (queued)` : activity)).join(', '),
    ],
    [
      'Next attempt',
      attempt && `${attempt.of}, attempt ${attempt.attempt}, ${untilOf(attempt.at, nowMs)} (${attempt.at})`,
    ],
    ['Fails at', failure && `${failure.at} (${untilOf(failure.at, nowMs)}), by the ${failure.timeout} timeout`],
    ['Drain', drain?.message],
    ['Node', node],
    ['VM', providerID],
    ['MachineDeployment', fleet?.replace(/^[^/]*\//, '')],
    ['MachineSet', set],
    ['Namespace', namespace],
    ['Created', created === undefined ? undefined : element('span', {}, age(created, nowMs), ` ago (${created})`)],
  ];
  return [
    element('p', { class: 'lead' }, mark(attention), element('strong', { text: phase })),
    element(
      'dl',
      { class: 'details' },
      ...rows.flatMap(([label, value]) =>
        value === undefined || value === ''
          ? []
          : [element('dt', { text: label }), element('dd', { class: 'free' }, value)],
      ),
    ),
    element('p', {
      class: 'muted small',
      text: `machinist describe machine/${machine.name} -n ${namespace} shows its Events, too.`,
    }),
  ];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
