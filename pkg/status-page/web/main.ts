import type { Attention } from '../../fleet/attention.ts';
import { Connection, type ConnectionState } from './connection.ts';
import { Details } from './details.ts';
import { byID, element, setText } from './dom.ts';
import { FleetTable, rolloutItems } from './fleet-cards.ts';
import { age, drainItems, nothing, processFacts, refreshAges, retryItems, ShortList, standbyText } from './lists.ts';
import { MachineTable } from './machine-table.ts';
import { PhasePlot } from './phase-plot.ts';
import { holdersOf, isStandby, NOTHING_KNOWN, type PageState, withChanges } from './state.ts';
import { countText } from './texts.ts';

/** Ages are brought up to date so often. */
const REFRESHED_EVERY_MS = 1_000;

let state: PageState = NOTHING_KNOWN;
let connection: ConnectionState = 'connecting';
let heardMs = Date.now();
let isDrawing = false;

const now = (): number => Date.now() + state.aheadMs;

const details = new Details(byID('details') as HTMLDialogElement, (key) => state.machines.get(key));
const open = (key: string): void => {
  details.open(key);
  draw();
};
const machines = new MachineTable(byID('machines-body'), open);
const choose = (fleet: string): void => machines.choose({ fleet });
const fleets = new FleetTable(byID('fleets-body'), choose);
const plot = new PhasePlot(byID('history'));
const rollouts = new ShortList(byID('rollouts-body'), 'rollouts');
const drains = new ShortList(byID('drains-body'), 'drains');
const retries = new ShortList(byID('retries-body'), 'retries');

/** Draws once for all that has come until the next frame. */
function draw(): void {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    drawNow();
  });
}

let drawn: PageState | undefined;

function drawNow(): void {
  const { sections } = state;
  const nowMs = now();
  drawHeader();
  drawBanners();
  if (drawn !== state) {
    drawTiles();
    byID('process').replaceChildren(...processFacts(sections, nowMs));
    const ofRollouts = rolloutItems(sections, choose);
    showList('rollouts', rollouts, ofRollouts, 'All MachineDeployments are rolled out.');
    showList(
      'drains',
      drains,
      drainItems(sections, nowMs, open),
      standbyText(sections, 'Drains') ?? 'No Node is being drained.',
    );
    const ofRetries = retryItems(sections, nowMs, open);
    byID('retries').hidden = ofRetries.length === 0;
    showList('retries', retries, ofRetries, '');
    if (drawn?.sections.history !== sections.history) plot.show(sections.history, nowMs);
    if (drawn?.sections.fleets !== sections.fleets) fleets.show(sections.fleets, nowMs);
    if (drawn?.machines !== state.machines) machines.show(state.machines, nowMs);
    setText(byID('fleets-count'), countText(sections.fleets.length));
    setText(byID('machines-count'), countText(state.machines.size));
  }
  drawn = state;
  details.show(sections, nowMs);
}

function showList(id: string, list: ShortList, items: readonly HTMLElement[], none: string): void {
  setText(byID(`${id}-count`), countText(items.length));
  if (items.length > 0) list.show(items);
  else byID(`${id}-body`).replaceChildren(nothing(none));
}

function drawHeader(): void {
  const { sections } = state;
  const { process } = sections;
  setText(byID('namespace'), process.namespace);
  const standby = isStandby(sections);
  setText(byID('role'), sections.leaders.length === 0 ? '' : standby ? 'Standing by' : 'Leading');
  byID('role').dataset['state'] = standby ? 'standby' : 'leading';
  const live = byID('connection');
  live.dataset['state'] = connection;
  setText(live, CONNECTION_TEXTS[connection]);
  setText(byID('foot'), process.identity === '' ? '' : `${process.program} ${process.version}, ${process.identity}`);
  const inTrouble = [...state.machines.values()].filter(({ attention }) => attention === 'attention').length;
  document.title = `${inTrouble === 0 ? '' : `(${countText(inTrouble)}) `}Machinist · ${process.namespace}`;
}

const CONNECTION_TEXTS: Readonly<Record<ConnectionState, string>> = {
  connecting: 'Connecting…',
  live: 'Live',
  lost: 'Connection lost',
  refused: 'Not served',
};

let banners = '';

/** What has to be known before anything else is believed. */
function drawBanners(): void {
  const { sections } = state;
  const { clusters, process, leaders } = sections;
  const texts: { attention: Attention; text: string; since?: string }[] = [];
  if (connection === 'lost' || connection === 'refused') {
    const why =
      connection === 'refused'
        ? 'The manager does not serve this page at present, or serves too many browsers'
        : 'The connection to the manager is lost';
    texts.push({
      attention: 'attention',
      text: `${why}. The data shown is outdated; reconnecting.`,
      since: new Date(heardMs + state.aheadMs).toISOString(),
    });
  }
  for (const { state: of, text = '', since, cluster } of clusters) {
    if (of !== 'outage' && of !== 'failing') continue;
    const what = of === 'outage' ? text : `API server of cluster "${cluster}" does not answer (${text})`;
    texts.push({
      attention: 'attention',
      text: `${what}. Data of this cluster may be outdated.`,
      ...(since !== undefined && { since }),
    });
  }
  if (isStandby(sections)) {
    const holders = holdersOf(sections);
    const leader = holders.length === 0 ? 'There is no leader at present.' : `${holders.join(' and ')} leads.`;
    texts.push({
      attention: leaders.some(({ trouble }) => trouble !== undefined) ? 'attention' : 'progressing',
      text: `This replica is standing by. ${leader}`,
    });
  }
  if (!process.hasSynced)
    texts.push({ attention: 'progressing', text: 'Caches are being filled; the page is not complete yet.' });
  if (!process.readsMachines)
    texts.push({ attention: 'ok', text: 'This process does not read Machines of machine.sapcloud.io.' });
  const next = JSON.stringify(texts);
  if (next === banners) return;
  banners = next;
  byID('banners').replaceChildren(
    ...texts.map(({ attention, text, since }) =>
      element(
        'p',
        { class: `banner ${attention}`, attributes: { role: attention === 'attention' ? 'alert' : 'note' } },
        element('span', { class: 'free', text }),
        ...(since === undefined ? [] : [element('span', { class: 'nowrap' }, age(since, now()), ' ago')]),
      ),
    ),
  );
}

interface Tile {
  readonly label: string;
  readonly count: string;
  readonly note: string;
  readonly attention: Attention | undefined;
  readonly go: () => void;
}

function drawTiles(): void {
  const { sections } = state;
  const all = [...state.machines.values()];
  const count = (attention: Attention): number => all.filter((one) => one.attention === attention).length;
  const running = all.filter(({ phase }) => phase === 'Running' || phase === 'Available').length;
  const ofRollouts = sections.fleets.filter(({ rollout }) => rollout !== undefined && rollout.state !== 'done');
  const blocked = sections.drains.filter(({ isBlocked }) => isBlocked).length;
  const held = sections.fleets.filter(({ attention }) => attention === 'attention').length;
  const tiles: readonly Tile[] = [
    {
      label: 'Machines',
      count: countText(all.length),
      note: `${countText(running)} running`,
      attention: undefined,
      go: () => machines.choose({}),
    },
    {
      label: 'Need attention',
      count: countText(count('attention')),
      note: 'machines',
      attention: count('attention') > 0 ? 'attention' : 'ok',
      go: () => machines.choose({ attention: 'attention' }),
    },
    {
      label: 'In progress',
      count: countText(count('progressing')),
      note: 'machines',
      attention: count('progressing') > 0 ? 'progressing' : undefined,
      go: () => machines.choose({ attention: 'progressing' }),
    },
    {
      label: 'MachineDeployments',
      count: countText(sections.fleets.length),
      note: held === 0 ? 'none need attention' : `${countText(held)} need attention`,
      attention: held > 0 ? 'attention' : undefined,
      go: () => goTo('fleets'),
    },
    {
      label: 'Rollouts',
      count: countText(ofRollouts.length),
      note: 'not finished',
      attention: ofRollouts.some(({ attention }) => attention === 'attention')
        ? 'attention'
        : ofRollouts.length > 0
          ? 'progressing'
          : undefined,
      go: () => goTo('rollouts'),
    },
    {
      label: 'Drains',
      count: countText(sections.drains.length),
      note: blocked === 0 ? 'none blocked' : `${countText(blocked)} blocked`,
      attention: blocked > 0 ? 'attention' : sections.drains.length > 0 ? 'progressing' : undefined,
      go: () => goTo('drains'),
    },
  ];
  const parent = byID('tiles');
  for (const [i, tile] of tiles.entries()) showTile(parent, i, tile);
}

const actions: (() => void)[] = [];

/** Each keeps its element, and so focus. */
function showTile(parent: HTMLElement, index: number, { label, count, note, attention, go }: Tile): void {
  let button = parent.children[index] as HTMLButtonElement | undefined;
  if (button === undefined) {
    const parts = ['tile-count', 'tile-label', 'tile-note muted'].map((one) => element('span', { class: one }));
    button = element('button', { attributes: { type: 'button' }, onClick: () => actions[index]?.() }, ...parts);
    parent.append(button);
  }
  button.className = `tile ${attention ?? ''}`;
  actions[index] = go;
  for (const [i, text] of [count, label, note].entries()) {
    const part = button.children[i];
    if (part !== undefined) setText(part, text);
  }
}

function goTo(id: string): void {
  const section = byID(id);
  section.scrollIntoView();
  section.focus({ preventScroll: true });
}

new Connection({
  changed: (changes, isFirst) => {
    state = withChanges(state, changes, isFirst, Date.now());
    draw();
  },
  stateChanged: (next, sinceMs) => {
    heardMs = sinceMs;
    if (connection === next) return;
    connection = next;
    draw();
  },
}).open();
setInterval(() => refreshAges(document, now()), REFRESHED_EVERY_MS);
addEventListener('hashchange', draw);
