import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { LONGEST_TEXT } from '../../../pkg/apis/short-text.ts';
import { eventAt, lease, machineIn, NOW_MS, topFacts, topView, work } from '../../../test/top-facts.ts';
import { type Looking, START } from './keys.ts';
import { drawHelp, drawList, drawStory, type Screen, type ScreenSize } from './screen.ts';
import { storyText } from './story-text.ts';
import { plain, widthOf } from './text.ts';
import type { OpenDrain } from '../../../pkg/health/work-in-progress.ts';
import type { TopView } from './view.ts';

const DRAIN = {
  machine: 'default/m-2',
  purpose: 'deletion',
  since: '2026-01-01T00:08:00Z',
  failures: 0,
  isBlocked: true,
  message: 'Waiting for 1 pod: ns/a (PodDisruptionBudget b currently allows no eviction).',
  podsDeletedAt: '2026-01-01T00:12:00Z',
};
const RETRY = {
  machine: 'default/m-3',
  call: 'create',
  code: 'ResourceExhausted',
  message: 'no room',
  failures: 3,
  since: '2026-01-01T00:00:00Z',
  nextAttempt: '2026-01-01T00:10:40Z',
};

/** A bit of everything. */
const FULL = topView({
  machines: [
    machineIn('Running', 'm-1'),
    machineIn('Terminating', 'm-2'),
    machineIn('CrashLoopBackOff', 'm-3', (m) => void delete m.spec.providerID),
  ],
  work: [
    work({
      drains: [DRAIN],
      retries: [RETRY],
      deadlines: [{ machine: 'default/m-3', timeout: 'creation', failsAt: '2026-01-01T00:20:00Z' }],
    }),
  ],
  events: [eventAt('2026-01-01T00:09:00Z')],
});

function text({ lines }: Screen): readonly string[] {
  return lines.map((line) => plain(line));
}

const draw = (columns: number, rows: number, view: TopView = FULL, looking: Partial<Looking> = {}): Screen =>
  drawList(view, { ...START, ...looking }, { columns, rows });

describe.each([
  {
    columns: 60,
    has: ['pods deleted at 00:12:00', 'ns/a (PodDisruptionBudget b', 'next attempt at 00:10:40'],
    hasNot: ['WAITS FOR'],
  },
  {
    columns: 80,
    has: ['pods deleted at 00:12:00', '1 pod: ns/a', 'next attempt at 00:10:40 (in 40s), the 4th'],
    hasNot: ['NODE'],
  },
  {
    columns: 120,
    has: ['pods deleted at 00:12:00 (in 2m)', '· becomes Failed at 00:20:00', 'WAITS FOR', 'POOL'],
    hasNot: [],
  },
  {
    columns: 200,
    has: ['(PodDisruptionBudget b currently allows no eviction)', 'ResourceExhausted: no room', 'NODE'],
    hasNot: [],
  },
])('with $columns columns', ({ columns, has, hasNot }) => {
  const lines = text(draw(columns, 40));

  test('the screen is full, and has all sections', () => {
    expect(lines).toHaveLength(40);
    expect(lines.filter((line) => line.includes('─')).map((line) => line.split(' ')[0])).toEqual([
      'Pools',
      'Drains',
      'Retries',
      'Machines',
      'Events',
    ]);
    expect(lines[0]).toMatch(/^machinist top · .* 00:10:00 UTC$/);
    expect(lines.at(-1)).toMatch(/^Enter story.*q quit$/);
  });

  test('what matters most is there, and what does not fit is not', () => {
    for (const one of has) expect(lines.join('\n')).toContain(one);
    for (const one of hasNot) expect(lines.join('\n')).not.toContain(one);
    expect(lines.some((line) => /^>! m-2 +Terminating .*DrainBlocked/.test(line))).toBe(true);
    expect(lines.join('\n')).toMatch(/2\/2 ready {2}█{10,20}/);
    expect(lines.join('\n')).toMatch(/^Machines 3: .*\s+! 2 need attention$/m);
  });
});

/** Names and messages of all scripts, of any length. */
const WORD = fc.string({ unit: 'grapheme', maxLength: 60 });
const VIEW = fc
  .array(
    fc.record({ name: WORD, phase: fc.constantFrom('Running', 'Pending', 'Unknown', 'Failed'), description: WORD }),
    { maxLength: 60 },
  )
  .chain((many) =>
    fc.record({ message: WORD, namespace: WORD }).map(({ message, namespace }) =>
      topView({
        namespace,
        machines: many.map(({ name, phase, description }, i) =>
          machineIn(phase as 'Running', `${i}${name}`, (m) => {
            m.metadata.namespace = namespace;
            m.status.lastOperation = { description };
          }),
        ),
        work: [work({ drains: [{ ...DRAIN, message }], retries: [{ ...RETRY, message }] })],
        events: [eventAt('2026-01-01T00:09:00Z', { message })],
        troubles: [{ what: message, sinceMs: NOW_MS, message: namespace, isRefused: true }],
      }),
    ),
  );
const SIZE: fc.Arbitrary<ScreenSize> = fc.record({
  columns: fc.integer({ min: 60, max: 200 }),
  rows: fc.integer({ min: 5, max: 80 }),
});

test('no line is wider than the screen, and no screen is longer, whatever there is to show', () => {
  fc.assert(
    fc.property(VIEW, SIZE, WORD, fc.nat(80), (view, size, filter, top) => {
      const screens = [
        drawList(view, { ...START, filter, top }, size),
        drawList(view, { ...START, top }, size),
        drawStory(filter, `${filter}\nMessage:   ${filter} ${filter}`, { ...START, storyTop: top }, size),
        drawHelp(size),
      ];
      for (const { lines } of screens) {
        expect(lines.length).toBeLessThanOrEqual(size.rows);
        for (const line of lines) {
          expect(widthOf(plain(line))).toBeLessThanOrEqual(size.columns);
          expect(plain(line)).not.toMatch(/\p{Cc}/u);
        }
      }
      expect(screens[1]?.lines).toHaveLength(size.rows);
    }),
    { numRuns: 30 },
  );
});

/** All that moves the cursor, colours, ends a line or turns text round, behind what can be found again. */
const evil = (name: string): string =>
  `<${name}\u001B[31m\u001B[2J\u001B]0;t\u0007\r\n\t\u0000\u007F\u009B1m\u2028\u202E\u2066\u200F>`;

/** Every text is the result of `textOf`, also those that the API server would not accept. */
function viewWith(textOf: (name: string) => string): TopView {
  const machines = (['Running', 'CrashLoopBackOff'] as const).map((phase, i) =>
    machineIn(phase, `m-${i}`, (m) => {
      m.metadata.name = textOf(`name ${i}`);
      m.metadata.namespace = textOf(`namespace ${i}`);
      m.metadata.labels['node'] = textOf('node');
      m.spec.providerID = textOf('provider');
      m.spec.class = { kind: 'MachineClass', name: textOf('class') };
      m.status.currentStatus.phase = i === 0 ? (textOf('phase') as 'Running') : phase;
      m.status.lastOperation = {
        type: 'Create',
        state: 'Failed',
        description: textOf('description'),
        errorCode: textOf('code'),
      };
    }),
  );
  const drain = { ...DRAIN, machine: `ns/${textOf('drained')}`, purpose: textOf('purpose'), message: textOf('drain') };
  const { podsDeletedAt: _end, ...forced } = { ...drain, machine: `ns/${textOf('forced')}`, forcedBy: textOf('force') };
  return topView({
    cluster: textOf('server'),
    machines,
    deployments: topFacts().deployments.map((one) => ({
      ...one,
      metadata: { ...one.metadata, name: textOf('pool') },
      status: { conditions: [{ type: 'APIServerUnreachable', status: 'True', message: textOf('outage') }] },
    })),
    work: [
      work({
        drains: [drain, forced] as OpenDrain[],
        retries: [{ ...RETRY, call: textOf('call'), code: textOf('retry code'), message: textOf('retry') }],
        exhausted: [
          {
            machineClass: `ns/${textOf('exhausted')}`,
            message: textOf('exhaustion'),
            failures: 1,
            nextAttempt: RETRY.nextAttempt,
          },
        ],
      }),
    ],
    events: [
      eventAt('2026-01-01T00:09:00Z', {
        reason: textOf('event reason'),
        message: textOf('event'),
        involvedObject: { kind: textOf('kind'), name: textOf('object'), uid: 'u' },
      }),
    ],
    leases: [lease(textOf('holder'))],
    answers: [{ name: textOf('process'), error: textOf('error') }],
    troubles: [{ what: textOf('source'), sinceMs: NOW_MS, message: textOf('refusal'), isRefused: true }],
  });
}

test.each([
  { columns: 60, rows: 60 },
  { columns: 2_000, rows: 90 },
])('no text of a view does anything to a terminal of $columns columns', (size) => {
  const view = viewWith(evil);
  const story = `${evil('label')}\nMessage:   ${evil('story')}`;
  const screens = [
    drawList(view, { ...START, filter: evil('filter') }, size),
    drawList(view, START, size),
    drawStory(evil('key'), story, START, size),
    drawStory(evil('key'), undefined, START, size),
  ];

  const lines = screens.flatMap(text);
  for (const line of lines) expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u200E\u200F\u202A-\u202E\u2066-\u2069]/u);
  if (size.columns < 100) return;
  // Each of them was shown.
  const shown = new Set(lines.join('\n').match(/<[a-z0-9 ]+? (?=\[)/g));
  const all = `server,source,refusal,holder,process,error,pool,phase,drained,purpose,drain,forced,force,call,retry code,retry,
    exhausted,exhaustion,name 0,name 1,namespace 0,namespace 1,node,event reason,event,kind,object,filter,story,label,key`;
  expect(all.split(/,\s*/).filter((name) => !shown.has(`<${name} `))).toEqual([]);
});

test('no text of a view, nor of a story, is longer than what is kept of texts from outside', () => {
  const long = '机'.repeat(600_000);
  const { rows, ...around } = viewWith((name) => `${name} ${long}`);
  const told = machineIn('CrashLoopBackOff', 'm-1', (m) => {
    m.status.lastOperation = { type: 'Create', state: 'Failed', description: long };
    m.status.conditions = [{ type: 'Ready', status: 'False', reason: long, message: long }];
  });

  const longest = (value: unknown): number => {
    if (typeof value === 'string') return value.length;
    return typeof value === 'object' && value !== null ? Math.max(0, ...Object.values(value).map(longest)) : 0;
  };

  expect(longest(around)).toBe(LONGEST_TEXT);
  expect(longest(rows)).toBe(LONGEST_TEXT);
  const story = storyText(told, [eventAt('2026-01-01T00:09:00Z', { message: long })], NOW_MS);
  expect(story.length).toBeLessThan(12 * LONGEST_TEXT);
});

describe('the list', () => {
  const many = topView({
    machines: Array.from({ length: 50 }, (_one, i) =>
      machineIn(i === 7 ? 'Failed' : 'Running', `m-${String(i).padStart(2, '0')}`),
    ),
  });
  const namesOn = (screen: Screen): readonly string[] =>
    text(screen).flatMap((line) => /^[> ][ ·!] (m-\d\d) /.exec(line)?.[1] ?? []);

  test('begins with what needs attention, and scrolls to what is selected', () => {
    const first = draw(100, 30, many);
    const later = draw(100, 30, many, { selected: 'default/m-40' });

    expect(namesOn(first)[0]).toBe('m-07');
    expect(namesOn(first)).toHaveLength(first.pageSize);
    expect(namesOn(later).at(-1)).toBe('m-40');
    expect(text(later).filter((line) => line.startsWith('>'))).toEqual([expect.stringMatching(/^> {2}m-40 /)]);
    expect(text(later).join('\n')).toContain(`Machines ${later.top + 1}-${later.top + later.pageSize} of 50`);
  });

  test.each<{ looking: Partial<Looking>; names: readonly string[]; says: string }>([
    {
      looking: { filter: 'M-1 running' },
      names: ['m-10', 'm-11', 'm-12'],
      says: '1-10 of 10 · sorted by attention · filter: M-1 running',
    },
    { looking: { onlyAttention: true }, names: ['m-07'], says: '1-1 of 1 · sorted by attention · attention only' },
    { looking: { sort: 'name' }, names: ['m-00', 'm-01', 'm-02'], says: 'sorted by name' },
    { looking: { sort: 'name', isReversed: true }, names: ['m-49', 'm-48', 'm-47'], says: 'sorted by name, reversed' },
    { looking: { sort: 'phase' }, names: ['m-07', 'm-00'], says: 'sorted by phase' },
    { looking: { filter: 'x', isTyping: true }, names: [], says: 'Machines none · sorted by attention · filter: x_' },
  ])('shows $says', ({ looking, names, says }) => {
    const screen = draw(100, 30, many, looking);

    // Of a long list the first ones.
    expect(names.length < 2 ? namesOn(screen) : namesOn(screen).slice(0, names.length)).toEqual(names);
    expect(text(screen).join('\n')).toContain(says);
  });

  test('on a low screen has the place of everything else', () => {
    const lines = text(draw(80, 8, FULL));

    expect(lines).toHaveLength(8);
    expect(lines.filter((line) => /^[> ][ ·!] m-/.test(line))).toHaveLength(3);
  });

  test('that is short leaves its place to Events', () => {
    const events = Array.from({ length: 30 }, (_one, i) => eventAt(`2026-01-01T00:09:${String(i + 10)}Z`));

    const shown = (rows: number): number =>
      text(draw(100, rows, topView({ events }))).filter((line) => line.includes('NodeJoined')).length;

    expect(shown(30)).toBeGreaterThan(15);
    expect(shown(60)).toBe(30);
    expect(shown(19)).toBe(0);
  });

  test('says what is read while nothing is there', () => {
    expect(text(draw(80, 24, topView({ isComplete: false, machines: [] }))).join('\n')).toContain(
      'Reading the cluster…',
    );
  });
});

describe('a story', () => {
  test('continues long values below where they begin, and can be scrolled to its end', () => {
    const story = `Name:      m-1\nMessage:   ${'word '.repeat(30).trim()}\nEvents:  <none>`;
    const size = { columns: 60, rows: 6 };

    const first = drawStory('default/m-1', story, START, size);
    const last = drawStory('default/m-1', story, { ...START, storyTop: 99 }, size);

    expect(text(first)[0]).toMatch(/^Machine default\/m-1 1-4 of 5 ─/);
    expect(text(first)[3]).toMatch(/^ {11}word/);
    expect(text(last)[4]).toBe('Events:  <none>');
    expect(first.storyEnd).toBe(1);
  });

  test('of a machine that is gone says so', () => {
    expect(text(drawStory('default/m-1', undefined, START, { columns: 60, rows: 5 }))[1]).toBe(
      'Machine default/m-1 no longer exists.',
    );
  });
});
