import { toTimestamp } from '../../../pkg/base/clock/clock.ts';
import { humanDuration } from '../../../pkg/fleet/human-duration.ts';
import type { Attention } from '../../../pkg/fleet/attention.ts';
import { type Looking, topFor } from './keys.ts';
import { chosenRows, type MachineRow, RANKS } from './machine-rows.ts';
import { type Column, tableLines } from './table.ts';
import { cleaned, cut, fitted, type Line, plain, type Segment, type Tone, widthOf, wrapped } from './text.ts';
import { type DrainRow, type EventRow, type PoolRow, type RetryRow, timeOfDay, type TopView } from './view.ts';

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

/** A screen full of lines, none of which is wider than the screen. */
export interface Screen {
  readonly lines: readonly Line[];
  /** Machines in the list, in their order, and how many of them are shown from which on. */
  readonly keys: readonly string[];
  readonly pageSize: number;
  readonly top: number;
  /** How far a story can be scrolled. */
  readonly storyEnd: number;
}

/** The marks say what the colours say. */
const MARKS: Readonly<Record<Attention, string>> = { ok: ' ', progressing: '·', attention: '!' };
const TONES: Readonly<Record<Attention, Tone>> = { ok: 'ok', progressing: 'progressing', attention: 'attention' };
/** Lower screens have less of everything. */
const LOW = 20;
/** The list keeps at least so many lines. */
const SHORTEST_LIST = 3;

/** The list of machines with all that is around it. */
export function drawList(view: TopView, looking: Looking, size: ScreenSize): Screen {
  const rows = chosenRows(view.rows, looking);
  const above = [...header(view, size), ...pools(view, size), ...phases(view, size)];
  const middle = [...drains(view, size), ...retries(view, size)];
  const below = [...events(view, size, 0), footer(looking, size)];
  const fixed = above.length + middle.length + below.length + 2;
  // What is less important makes room for the list.
  const isTight = size.rows - fixed < SHORTEST_LIST;
  const shown = isTight
    ? { above: header(view, size), middle: [] as Line[], below: [footer(looking, size)] }
    : { above, middle, below };
  const taken = shown.above.length + shown.middle.length + shown.below.length + 2;
  const room = Math.max(1, size.rows - taken);
  // A list that is short leaves its lines to the Events.
  const spare = isTight || size.rows < LOW ? 0 : Math.max(0, Math.min(room - SHORTEST_LIST, room - rows.length));
  const pageSize = room - spare;
  const index = Math.max(
    0,
    rows.findIndex(({ key }) => key === looking.selected),
  );
  const top = topFor(looking.top, index, pageSize, rows.length);
  const list = machineLines(view, rows, { index, top, pageSize }, looking, size);
  const lines = [
    ...shown.above,
    ...shown.middle,
    ...list,
    ...(isTight ? shown.below : [...events(view, size, spare), footer(looking, size)]),
  ].slice(0, Math.max(1, size.rows));
  return {
    lines: lines.map((line) => fitted(line, size.columns)),
    keys: rows.map(({ key }) => key),
    pageSize,
    top,
    storyEnd: 0,
  };
}

/** Everything about one machine, as `machinist describe` explains it. `text`: undefined when it no longer exists. */
export function drawStory(name: string, text: string | undefined, looking: Looking, size: ScreenSize): Screen {
  const all =
    text === undefined
      ? storyLines(`Machine ${name} no longer exists.`, size)
      : text.split('\n').flatMap((line) => storyLines(line, size));
  const pageSize = Math.max(1, size.rows - 2);
  const storyEnd = Math.max(0, all.length - pageSize);
  const from = Math.min(looking.storyTop, storyEnd);
  const page = all.slice(from, from + pageSize);
  const blank = Array.from({ length: pageSize - page.length }, () => '');
  const position = storyEnd === 0 ? '' : ` ${from + 1}-${from + page.length} of ${all.length}`;
  const lines: Line[] = [
    titleLine(`Machine ${name}`, position, size),
    ...[...page, ...blank].map((line) => [{ text: line }]),
    keyLine(
      [
        ['Esc', 'back'],
        ['↑↓', 'scroll'],
        ['?', 'help'],
        ['q', 'quit'],
      ],
      size,
    ),
  ];
  return {
    lines: lines.slice(0, size.rows).map((line) => fitted(line, size.columns)),
    keys: [],
    pageSize,
    top: 0,
    storyEnd,
  };
}

const HELP: readonly (readonly [keys: string, does: string])[] = [
  ['↑ ↓  j k', 'select a machine'],
  ['PgUp PgDn  b Space', 'move by a page'],
  ['Home End  g G', 'move to the first or the last'],
  ['Enter', 'show everything about the selected machine'],
  ['Esc', 'go back; in the list: show all machines again'],
  ['/', 'filter: words that occur in name, namespace, pool, class, phase, reason, Node or VM'],
  ['a', 'show only machines that need attention, or all'],
  ['s', 'sort by attention, name, phase, pool or age'],
  ['r', 'reverse the order'],
  ['q  Ctrl-C', 'quit'],
];
const LEGEND = [
  'Marks: ! needs attention: it does not continue without a user, or is held on purpose',
  '       · is on its way and continues by itself',
  'Times of the day are in UTC.',
];

export function drawHelp(size: ScreenSize): Screen {
  const width = Math.max(...HELP.map(([keys]) => widthOf(keys))) + 2;
  const lines: Line[] = [
    titleLine('Keys', '', size),
    ...HELP.flatMap(([keys, does]) =>
      wrapped(
        `${keys}${' '.repeat(width - widthOf(keys))}${does}`,
        size.columns,
        ' '.repeat(Math.min(width, size.columns / 2)),
      ).map((text) => [{ text }]),
    ),
    [],
    ...LEGEND.flatMap((line) => wrapped(line, size.columns, ' '.repeat(9)).map((text) => [{ text }])),
  ];
  const room = Math.max(1, size.rows - 1);
  const page = [...lines, ...Array.from({ length: Math.max(0, room - lines.length) }, (): Line => [])].slice(0, room);
  const all = [
    ...page,
    keyLine(
      [
        ['any key', 'back'],
        ['q', 'quit'],
      ],
      size,
    ),
  ];
  return { lines: all.map((line) => fitted(line, size.columns)), keys: [], pageSize: 1, top: 0, storyEnd: 0 };
}

function header({ title, nowMs, health, isComplete }: TopView, size: ScreenSize): readonly Line[] {
  const clock = `${toTimestamp(nowMs).slice(11, 19)} UTC`;
  const left = cut(`machinist top · ${cleaned(title)}`, size.columns - clock.length - 1);
  const space = ' '.repeat(Math.max(1, size.columns - widthOf(left) - clock.length));
  const first: Line = [
    { text: left, tone: 'title' },
    { text: `${space}${clock}`, tone: 'dim' },
  ];
  const room = size.rows < LOW ? 1 : Math.max(2, Math.floor(size.rows / 6));
  const bad = health.filter(({ attention }) => attention !== 'ok');
  const good = health.filter(({ attention }) => attention === 'ok');
  const all = [
    ...bad,
    ...(isComplete ? good : [{ attention: 'progressing', text: 'Reading the cluster…' } as const]),
  ].flatMap(({ attention, text }) =>
    wrapped(cleaned(text), size.columns - 2, '  ')
      .slice(0, 2)
      .map((line, i): Line => [
        { text: `${i === 0 ? MARKS[attention] : ' '} ${line}`, tone: attention === 'ok' ? 'dim' : TONES[attention] },
      ]),
  );
  return [first, ...limited(all, room, 'lines')];
}

/** So many of the lines as there is room for; the last one says how many are missing. */
function limited(lines: readonly Line[], room: number, what: string): readonly Line[] {
  if (lines.length <= room) return lines;
  if (room <= 1) return lines.slice(0, room);
  return [...lines.slice(0, room - 1), [{ text: `  … ${lines.length - room + 1} more ${what}`, tone: 'dim' }]];
}

function pools({ pools: all }: TopView, size: ScreenSize): readonly Line[] {
  if (all.length === 0) return [];
  const sorted = all.toSorted((a, b) => RANKS[a.attention] - RANKS[b.attention] || (a.name < b.name ? -1 : 1));
  const barWidth = size.columns < 100 ? 10 : 20;
  const columns: readonly Column<PoolRow>[] = [
    {
      title: '',
      value: ({ attention }) => MARKS[attention],
      tone: ({ attention }) => TONES[attention],
      least: 1,
      most: 1,
    },
    { title: 'POOL', value: ({ name }) => name, least: 12, most: 40 },
    { title: 'READY', value: ({ ready, desired }) => `${ready}/${desired} ready`, least: 9, most: 17, side: 'right' },
    {
      title: '',
      value: (row) => bar(row, barWidth),
      tone: ({ attention }) => TONES[attention],
      least: barWidth,
      most: barWidth,
    },
    {
      title: 'UPDATED',
      value: ({ updated }) => (updated === undefined ? '' : `${updated} updated`),
      least: 9,
      most: 13,
      dispensable: 1,
    },
    {
      title: 'STATE',
      value: ({ trouble }) => trouble,
      tone: ({ attention }) => (attention === 'ok' ? undefined : TONES[attention]),
      least: 12,
      most: Infinity,
    },
  ];
  const room = Math.max(1, Math.min(8, Math.floor(size.rows * 0.15)));
  const [, ...lines] = tableLines(columns, sorted.slice(0, room + 1), size.columns);
  const title = titleLine('Pools', ` ${all.length}`, size);
  return [title, ...limitedTo(lines, room, all.length, 'pools')];
}

function limitedTo(lines: readonly Line[], room: number, count: number, what: string): readonly Line[] {
  if (count <= room) return lines;
  const kept = Math.max(1, room - 1);
  if (room <= 1) return lines.slice(0, 1);
  return [...lines.slice(0, kept), [{ text: `  … ${count - kept} more ${what}`, tone: 'dim' }]];
}

/** How many of the machines that are wanted are ready. */
function bar({ ready, desired }: PoolRow, width: number): string {
  const share = desired === 0 ? (ready === 0 ? 1 : 0) : Math.min(1, ready / desired);
  // Full means all of them.
  const full = share === 1 ? width : Math.min(width - 1, Math.round(share * width));
  return `${'█'.repeat(full)}${'░'.repeat(width - full)}`;
}

function phases({ phases: counts, needAttention, rows }: TopView, size: ScreenSize): readonly Line[] {
  const parts = counts.map(({ phase, count }) => `${cleaned(phase)} ${count}`);
  const text = `Machines ${rows.length}${parts.length === 0 ? '' : `: ${parts.join(' · ')}`}`;
  const lines = wrapped(text, size.columns, '  ').slice(0, 2);
  const attention = `! ${needAttention} need${needAttention === 1 ? 's' : ''} attention`;
  if (needAttention === 0) return lines.map((line) => [{ text: line, tone: 'title' }]);
  const last = lines.at(-1) ?? '';
  const fits = widthOf(last) + widthOf(attention) + 3 <= size.columns;
  const tail: Segment = { text: fits ? `   ${attention}` : `  ${attention}`, tone: 'attention' };
  const before = lines.slice(0, -1).map((line): Line => [{ text: line, tone: 'title' }]);
  return fits
    ? [...before, [{ text: last, tone: 'title' }, tail]]
    : [...before, [{ text: last, tone: 'title' }], [tail]];
}

function roomFor(size: ScreenSize): number {
  return Math.max(1, Math.min(8, Math.floor(size.rows * 0.12)));
}

function drains({ drains: all }: TopView, size: ScreenSize): readonly Line[] {
  if (all.length === 0) return [];
  const isNarrow = size.columns < 80;
  const waitOfDrain = ({ message }: DrainRow): string => message.replace(/^Waiting for /, '');
  const columns: readonly Column<DrainRow>[] = [
    { title: '', value: ({ isBlocked }) => (isBlocked ? '!' : '·'), tone: toneOfDrain, least: 1, most: 1 },
    { title: 'MACHINE', value: ({ name }) => name, least: 12, most: 40 },
    { title: 'FOR', value: ({ purpose }) => purpose, least: 8, most: 15, dispensable: 1 },
    {
      title: 'UNTIL',
      value: ({ until, inText }) => (size.columns < 100 ? until : `${until}${inText}`),
      least: 20,
      most: 48,
    },
    ...(isNarrow
      ? []
      : [{ title: 'WAITS FOR', value: waitOfDrain, tone: toneOfDrain, least: 20, most: Infinity, dispensable: 2 }]),
  ];
  const room = roomFor(size);
  const [, ...lines] = tableLines(columns, all.slice(0, room + 1), size.columns);
  const shown = limitedTo(lines, room, all.length, 'drains');
  // There is no room beside it for what is waited for.
  const explained = shown.flatMap((line, i): Line[] => {
    const drain = all[i];
    if (!isNarrow || drain === undefined || (i === shown.length - 1 && all.length > room && room > 1)) return [line];
    return [line, [{ text: `    ${cleaned(waitOfDrain(drain))}`, tone: toneOfDrain(drain) }]];
  });
  return [titleLine('Drains', ` ${all.length}`, size), ...explained];
}

function toneOfDrain({ isBlocked }: DrainRow): Tone {
  return isBlocked ? 'attention' : 'progressing';
}

function retries({ retries: all }: TopView, size: ScreenSize): readonly Line[] {
  if (all.length === 0) return [];
  const columns: readonly Column<RetryRow>[] = [
    { title: '', value: () => '·', tone: () => 'progressing', least: 1, most: 1 },
    { title: 'WHAT', value: ({ name }) => name, least: 12, most: 40 },
    { title: 'CALL', value: ({ what }) => what, least: 6, most: 10, dispensable: 2 },
    { title: 'WHEN', value: ({ when }) => when, least: 30, most: 90 },
    { title: 'CAUSE', value: ({ cause }) => cause, tone: () => 'dim', least: 16, most: Infinity, dispensable: 1 },
  ];
  const room = roomFor(size);
  const [, ...lines] = tableLines(columns, all.slice(0, room + 1), size.columns);
  return [titleLine('Retries', ` ${all.length}`, size), ...limitedTo(lines, room, all.length, 'retries')];
}

interface Page {
  readonly index: number;
  readonly top: number;
  readonly pageSize: number;
}

function machineLines(
  view: TopView,
  rows: readonly MachineRow[],
  { index, top, pageSize }: Page,
  { sort, isReversed, filter, isTyping, onlyAttention }: Looking,
  size: ScreenSize,
): readonly Line[] {
  const page = rows.slice(top, top + pageSize);
  const range = rows.length === 0 ? ' none' : ` ${top + 1}-${top + page.length} of ${rows.length}`;
  const chosen = [
    `sorted by ${sort}${isReversed ? ', reversed' : ''}`,
    ...(onlyAttention ? ['attention only'] : []),
    ...(filter === '' && !isTyping ? [] : [`filter: ${cleaned(filter)}${isTyping ? '_' : ''}`]),
  ].join(' · ');
  const [titles = [], ...lines] = tableLines(columnsOf(view, rows), page, size.columns);
  const marked = lines.map((line, i): Line => {
    if (top + i !== index) return line;
    // The selection shows without colours too.
    const text = `>${plain(line).slice(1)}`;
    return [{ text: `${text}${' '.repeat(Math.max(0, size.columns - widthOf(text)))}`, tone: 'selected' }];
  });
  const blank = Array.from({ length: pageSize - page.length }, (): Line => []);
  const heads: Line = titles.map(({ text }) => ({ text, tone: 'dim' }));
  return [titleLine('Machines', `${range} · ${chosen}`, size), heads, ...marked, ...blank];
}

function columnsOf({ nowMs, rows: all }: TopView, rows: readonly MachineRow[]): readonly Column<MachineRow>[] {
  const toneOf = ({ attention }: MachineRow): Tone => TONES[attention];
  const isSeveral = new Set(all.map(({ namespace }) => namespace)).size > 1;
  // All that is listed, not only what is on the screen: columns stay where they are while it is scrolled.
  const longest = (value: (row: MachineRow) => string): number =>
    rows.reduce((most, row) => Math.max(most, widthOf(cleaned(value(row)))), 0);
  const upTo = (most: number, value: (row: MachineRow) => string): Pick<Column<MachineRow>, 'value' | 'most'> => ({
    value,
    most: Math.min(most, longest(value)),
  });
  return [
    // The first column is that of the selection.
    { title: '', value: ({ attention }) => ` ${MARKS[attention]}`, tone: toneOf, least: 2, most: 2 },
    ...(isSeveral ? [{ title: 'NAMESPACE', ...upTo(20, ({ namespace }) => namespace), least: 9, dispensable: 6 }] : []),
    { title: 'NAME', ...upTo(44, ({ name }) => name), least: 14 },
    { title: 'PHASE', ...upTo(22, ({ phase }) => phase), tone: toneOf, least: 11 },
    {
      title: 'AGE',
      value: ({ createdMs }) => (createdMs === undefined ? '' : humanDuration(Math.max(0, nowMs - createdMs))),
      least: 6,
      most: 6,
    },
    { title: 'REASON', ...upTo(24, ({ reason }) => reason), tone: toneOf, least: 10 },
    ...[
      { title: 'POOL', ...upTo(24, ({ pool }) => pool), least: 6, dispensable: 3 },
      { title: 'NODE', ...upTo(40, ({ node }) => node), least: 8, dispensable: 2 },
    ].filter(({ most }) => most > 0),
    { title: 'WAITS FOR', value: (row) => waitOf(row, nowMs), least: 24, most: Infinity, dispensable: 4 },
  ];
}

function waitOf({ reason, message, waitingFor, sinceMs, failsAt }: MachineRow, nowMs: number): string {
  if (waitingFor === '') return '';
  const wait = reason === 'DrainBlocked' ? message.replace(/^Waiting for /, '') : waitingFor;
  const since = sinceMs === undefined ? '' : ` (${humanDuration(Math.max(0, nowMs - sinceMs))})`;
  return failsAt === undefined ? `${wait}${since}` : `${wait}${since}; becomes Failed at ${timeOfDay(failsAt)}`;
}

function events({ events: all }: TopView, size: ScreenSize, spare: number): readonly Line[] {
  if (size.rows < LOW) return [];
  const columns: readonly Column<EventRow>[] = [
    { title: '', value: ({ isWarning }) => (isWarning ? '!' : ' '), tone: toneOfEvent, least: 1, most: 1 },
    { title: 'TIME', value: ({ time }) => time, tone: () => 'dim', least: 8, most: 8 },
    { title: 'REASON', value: ({ reason }) => reason, tone: toneOfEvent, least: 12, most: 24 },
    { title: 'OBJECT', value: ({ object }) => object, least: 16, most: 48, dispensable: 1 },
    { title: 'MESSAGE', value: ({ message }) => message, least: 16, most: Infinity },
  ];
  const room = Math.max(3, Math.min(12, Math.floor(size.rows * 0.16))) + spare;
  const shown = all.slice(-room);
  const [, ...lines] = tableLines(columns, shown, size.columns);
  const blank = Array.from({ length: room - shown.length }, (): Line => []);
  return [titleLine('Events', '', size), ...lines, ...blank];
}

function toneOfEvent({ isWarning }: EventRow): Tone | undefined {
  return isWarning ? 'attention' : undefined;
}

function footer({ isTyping, filter, onlyAttention }: Looking, size: ScreenSize): Line {
  if (isTyping)
    return keyLine(
      [
        ['Enter', 'keep filter'],
        ['Esc', 'clear'],
      ],
      size,
    );
  const hasChoice = filter !== '' || onlyAttention;
  return keyLine(
    [
      ['Enter', 'story'],
      ['/', 'filter'],
      ['s', 'sort'],
      ['a', onlyAttention ? 'all' : 'attention'],
      ...(hasChoice ? ([['Esc', 'show all']] as const) : []),
      ['?', 'help'],
      ['q', 'quit'],
    ],
    size,
  );
}

function keyLine(keys: readonly (readonly [key: string, does: string])[], { columns }: ScreenSize): Line {
  return fitted(
    keys.flatMap(([key, does], i): Segment[] => [
      { text: `${i === 0 ? '' : columns < 80 ? '  ' : '   '}${key}`, tone: 'title' },
      { text: ` ${does}`, tone: 'dim' },
    ]),
    columns,
  );
}

/** A title with a rule up to the end of the line. */
function titleLine(title: string, more: string, { columns }: ScreenSize): Line {
  const shown = cut(cleaned(title), columns);
  const rest = cut(more, Math.max(0, columns - widthOf(shown)));
  const left = columns - widthOf(shown) - widthOf(rest) - 1;
  return [
    { text: shown, tone: 'title' },
    { text: rest },
    { text: left > 0 ? ` ${'─'.repeat(left)}` : '', tone: 'dim' },
  ];
}

/** A line of a description; what does not fit continues below its value. */
function storyLines(line: string, { columns }: ScreenSize): readonly string[] {
  const text = cleaned(line);
  const label = /^[A-Z][\w ]*: +/.exec(text)?.[0].length ?? 4;
  return wrapped(text, columns, ' '.repeat(Math.min(label, Math.floor(columns / 3))));
}
