import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import {
  CREATION_SENT_ANNOTATION,
  MACHINE_FINALIZER,
  NODE_LABEL,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { stop } from '../../../work/reconcile/result.ts';
import type { MachineCopy } from '../../machine-facts/status.ts';
import { refusalShownBy } from '../explain/conditions.ts';
import { MachineNotes } from '../context.ts';
import { RefusedRecords } from './refused-record.ts';

const KEY = 'default/m-1';
const REFUSED = new ApiError(403, 'Forbidden', 'a webhook says no');
const BROKEN = new ApiError(500, 'InternalError', 'failed calling webhook');

type Observed = (m: ReturnType<typeof machine>) => void;

/** What is left of passes over `observed` each of which changed the copy as `change` says, and was refused with `err`. */
function refused(
  observed: Observed,
  change: (copy: MachineCopy, pass: MachineNotes) => void,
  errors: readonly ApiError[] = [REFUSED],
) {
  const world = new FakeWorld();
  const records = new RefusedRecords(world);
  const before = machine((m) => {
    m.metadata.finalizers = [MACHINE_FINALIZER];
    observed(m);
  });
  world.machines.put(before);
  let last: unknown;
  const left = errors.map((err) => {
    const pass = new MachineNotes();
    const ctx = world.context(before, pass);
    change(ctx.machine, pass);
    const instead = records.withoutRecord(ctx, err);
    if (instead === undefined) return undefined;
    const { ctx: told, ...rest } = instead;
    const events: string[] = [];
    told.pass.complete(({ reason, message }) => events.push(`${reason}: ${message}`));
    last = told.pass.resultOf(stop);
    return { ...rest, machine: told.machine, events };
  });
  return { before, left, result: last };
}

/** A machine of which each pass is refused label `node`; after how many milliseconds a pass wants another. */
function refusing(steps?: number) {
  const world = new FakeWorld();
  const records = new RefusedRecords(world);
  const before = machine();
  const pass = (ran = 0): number => {
    const ctx = world.context(before, new MachineNotes());
    ctx.pass.steps = ran;
    ctx.machine.metadata.labels = { [NODE_LABEL]: 'n-2' };
    records.withoutRecord(ctx, REFUSED);
    ctx.pass.complete(() => undefined);
    const result = ctx.pass.resultOf(stop);
    return result.kind === 'requeue' ? result.afterMs : Infinity;
  };
  if (steps !== undefined) pass(steps);
  return { world, records, before, pass };
}

interface RefusedCreation {
  readonly what: string;
  readonly change: (copy: MachineCopy) => void;
  readonly told: string;
  readonly finalizers?: string[];
  readonly annotations?: Record<string, string>;
  readonly code?: string;
}

interface LeftAfter {
  readonly what: string;
  readonly steps: number;
  readonly phase?: MachinePhase;
  readonly records?: boolean;
  readonly isDeletion?: boolean;
  readonly left: boolean;
}

const isRunning: Observed = () => undefined;
const becomesUnknown = (copy: MachineCopy): void => void (copy.status.currentStatus = { phase: 'Unknown' });

describe('a record that the API server refuses', () => {
  test.each([
    {
      what: 'the Node of a machine that works',
      change: (copy: MachineCopy) => void (copy.metadata.labels = { [NODE_LABEL]: 'n-2' }),
      told: 'label node',
    },
    {
      what: 'its priority',
      change: (copy: MachineCopy) => void (copy.metadata.annotations = { [PRIORITY_ANNOTATION]: '3' }),
      told: `annotation ${PRIORITY_ANNOTATION}`,
    },
    {
      what: 'its finalizer and its priority',
      change: (copy: MachineCopy) => {
        copy.metadata.annotations = { [PRIORITY_ANNOTATION]: '3' };
        copy.metadata.finalizers = [];
      },
      told: `annotation ${PRIORITY_ANNOTATION}, finalizer ${MACHINE_FINALIZER}`,
    },
    {
      what: 'its VM',
      change: (copy: MachineCopy) => void (copy.spec.providerID = 'sim:///m-2'),
      told: 'VM sim:///m-2 with Node name m-1',
    },
  ])('($what) keeps nothing of the status back, and is told of', ({ change, told }) => {
    const { before, left, result } = refused(isRunning, (copy) => {
      becomesUnknown(copy);
      change(copy);
    });

    const text = `The API server refuses to record ${told}: a webhook says no`;
    expect(left).toMatchObject([
      {
        refusal: text,
        failed: false,
        events: [`RecordRefused: ${text}`],
        machine: { status: { currentStatus: { phase: 'Unknown' } } },
      },
    ]);
    expect(left[0]?.machine.metadata).toEqual(before.metadata);
    expect(left[0]?.machine.spec).toEqual(before.spec);
    expect(result).toMatchObject({ kind: 'requeue' });
  });

  test('is told of once, and again when something else is refused', () => {
    const change = (copy: MachineCopy): void => void (copy.metadata.labels = { [NODE_LABEL]: 'n-2' });
    const other = new ApiError(403, 'Forbidden', 'a policy says no');

    const { left } = refused(isRunning, change, [REFUSED, REFUSED, other]);

    expect(left.map((one) => one?.events.length)).toEqual([1, 0, 1]);
  });

  test('that was told of by another process is not told of again', () => {
    const text = 'The API server refuses to record label node: a webhook says no';
    const condition = { type: 'RecordRefused', status: 'True', reason: 'Refused', message: text } as const;
    const { left } = refused(
      (m) => void (m.status.machineConditions = [condition]),
      (copy) => void (copy.metadata.labels = { [NODE_LABEL]: 'n-2' }),
    );

    expect(left).toMatchObject([{ refusal: text, events: [] }]);
  });

  test('is tried again later and later, however many events come in between', () => {
    const { pass, world } = refusing();
    const pauses = [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 600_000];

    for (const pauseMs of pauses) {
      const waitMs = pass();
      // Jitter is a fifth.
      expect(waitMs).toBeGreaterThanOrEqual(pauseMs * 0.8);
      expect(waitMs).toBeLessThanOrEqual(Math.min(pauseMs * 1.2, 600_000));
      world.clock.advance(1_000);
      expect(pass()).toBeCloseTo(waitMs - 1_000, 6);
      world.clock.advance(waitMs - 1_000);
    }
  });

  test('of a webhook that fails once is no matter', () => {
    const change = (copy: MachineCopy): void => void (copy.metadata.labels = { [NODE_LABEL]: 'n-2' });

    expect(refused(isRunning, change, [BROKEN]).left).toEqual([undefined]);
    expect(refused(isRunning, change, [BROKEN, BROKEN]).left[1]).toMatchObject({ failed: false });
  });

  test.each<RefusedCreation>([
    {
      what: 'its VM',
      change: (copy: MachineCopy) => void (copy.spec.providerID = 'sim:///m-2'),
      told: 'VM sim:///m-2 with Node name ',
    },
    {
      what: 'its finalizer',
      change: (copy: MachineCopy) => void (copy.metadata.finalizers = [MACHINE_FINALIZER]),
      told: `finalizer ${MACHINE_FINALIZER}`,
      finalizers: [],
      code: 'FinalizerRefused',
    },
    {
      what: 'its finalizer, when there may be a VM',
      change: (copy: MachineCopy) => void (copy.metadata.finalizers = [MACHINE_FINALIZER]),
      told: `finalizer ${MACHINE_FINALIZER}`,
      finalizers: [],
      annotations: { [CREATION_SENT_ANNOTATION]: '2026-01-01T00:00:00Z' },
    },
  ])('of a machine in creation ($what) fails the pass, and nothing but that is told', (row) => {
    const { change, told, finalizers = [MACHINE_FINALIZER], code = 'RecordRefused', annotations = {} } = row;
    const { left } = refused(
      (m) => {
        Object.assign(m.metadata, { finalizers, annotations });
        m.spec = {};
        m.metadata.labels = {};
        m.status = {} as (typeof m)['status'];
      },
      (copy, pass) => {
        change(copy);
        pass.event('VMCreated', 'x');
      },
    );

    const description = `The API server refuses to record ${told}: a webhook says no`;
    expect(left).toMatchObject([
      {
        refusal: undefined,
        failed: true,
        events: [`RecordRefused: ${description}`],
        machine: {
          status: {
            currentStatus: { phase: 'CrashLoopBackOff' },
            lastOperation: { type: 'Create', state: 'Failed', errorCode: code, description },
          },
        },
      },
    ]);
  });

  test('of a machine in creation that is not needed for its VM hides nothing of what the pass tells', () => {
    const { left } = refused(
      (m) => {
        m.spec = {};
        m.metadata.labels = {};
        m.metadata.annotations = { [CREATION_SENT_ANNOTATION]: '2026-01-01T00:00:00Z' };
        m.status.currentStatus.phase = 'CrashLoopBackOff';
      },
      (copy) => {
        delete copy.metadata.annotations?.[CREATION_SENT_ANNOTATION];
        copy.status.lastOperation = { type: 'Create', state: 'Failed', errorCode: 'ResourceExhausted' };
      },
    );

    expect(left).toMatchObject([
      {
        refusal: expect.stringContaining(CREATION_SENT_ANNOTATION),
        failed: false,
        machine: { status: { lastOperation: { errorCode: 'ResourceExhausted' } } },
      },
    ]);
  });

  test.each([
    { what: 'that ended earlier', steps: 4, left: true },
    { what: 'that came as far', steps: 10, left: false },
    { what: 'that began another phase', steps: 10, phase: 'Unknown', left: true },
    { what: 'that ended earlier, and recorded something', steps: 4, records: true, left: false },
    { what: 'of its deletion', steps: 4, isDeletion: true, left: false },
  ] as LeftAfter[])(
    'is over after a pass without it $what: $left',
    ({ steps, phase, records = false, isDeletion = false, left }) => {
      const { records: known, before, world } = refusing(10);
      const observed = machine((m) => {
        Object.assign(m, before);
        if (isDeletion) m.metadata = { ...m.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
      });
      const ctx = world.context(observed, new MachineNotes());
      ctx.pass.steps = steps;
      if (phase !== undefined) ctx.machine.status.currentStatus = { phase };
      if (records) ctx.machine.metadata.labels = { [NODE_LABEL]: 'n-3' };

      expect(known.leftAfter(ctx)).toBe(
        left ? 'The API server refuses to record label node: a webhook says no' : undefined,
      );
    },
  );

  const isDeleted: Observed = (m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    m.status.currentStatus.phase = 'Terminating';
  };

  test('of the Node of a machine that is deleted holds its deletion up no more than its VM', () => {
    const { left } = refused(isDeleted, (copy) => {
      copy.metadata.labels = { [NODE_LABEL]: 'n-2' };
      copy.status.lastOperation = { type: 'Delete', state: 'Processing', description: 'Initiate node drain' };
    });

    expect(left).toMatchObject([
      {
        failed: false,
        machine: {
          metadata: { labels: { [NODE_LABEL]: 'm-1' } },
          status: { lastOperation: { description: 'Initiate node drain' } },
        },
      },
    ]);
    expect(left[0]?.events).toHaveLength(1);
  });

  test('of its release says that the object stays, and that all else has come about', () => {
    const { left } = refused(isDeleted, (copy, pass) => {
      copy.metadata.finalizers = [];
      pass.event('VMDeleted', 'VM sim:///m-1 was deleted.');
    });

    const text = `The API server refuses to remove finalizer ${MACHINE_FINALIZER}: a webhook says no.`;
    expect(left).toMatchObject([
      {
        failed: true,
        events: ['VMDeleted: VM sim:///m-1 was deleted.', `RecordRefused: ${text}`],
        machine: {
          metadata: { finalizers: [MACHINE_FINALIZER] },
          status: {
            lastOperation: {
              state: 'Failed',
              errorCode: 'RecordRefused',
              description: `${text} Initiate machine object finalizer removal`,
            },
          },
        },
      },
    ]);
  });

  test('takes back what is true only with it: Events, and the end of a preservation that is asked for still', async () => {
    const world = new FakeWorld();
    const observed = machine((m) => {
      m.metadata.finalizers = [MACHINE_FINALIZER];
      m.metadata.annotations = { [PRIORITY_ANNOTATION]: '3', [PRESERVE_ANNOTATION]: 'now' };
      m.status.currentStatus.preserveExpiryTime = '2025-12-31T00:00:00Z';
    });
    world.machines.put(observed);
    using pass = new MachineNotes();
    const ctx = world.context(observed, pass);
    for (const step of world.upkeep.filter(({ name }) => name === 'preservation')) await step.run(ctx);
    expect(ctx.machine.status.currentStatus?.preserveExpiryTime).toBeUndefined();

    const instead = new RefusedRecords(world).withoutRecord(ctx, REFUSED);

    expect(instead?.ctx.machine.status.currentStatus?.preserveExpiryTime).toBe('2025-12-31T00:00:00Z');
    const reasons: string[] = [];
    pass.complete(({ reason }) => reasons.push(reason));
    expect(reasons).toEqual(['RecordRefused']);
  });
});

describe('a pass over a machine', () => {
  /** A Running machine without our finalizer, which a pass puts on it; the answers to its writes. */
  function scene(...failures: readonly unknown[]): FakeWorld {
    const world = new FakeWorld();
    world.hasTarget = false;
    world.machines.put(machine());
    world.writer.failures.push(...failures);
    return world;
  }

  const stored = (world: FakeWorld): Machine => world.machines.get(KEY) as Machine;

  test('writes the status alone when the rest is refused, and clears it up when that is taken', async () => {
    const world = scene(REFUSED);

    const first = await world.reconcile();
    expect(first).toMatchObject({ result: { kind: 'requeue' }, writes: ['main', 'status'], error: undefined });
    expect(world.writer.writes[1]?.body).toMatchObject({ status: { machineConditions: expect.any(Array) } });
    expect(first.events.map(({ reason }) => reason)).toEqual(['RecordRefused']);
    expect(refusalShownBy(stored(world))).toContain('a webhook says no');

    expect(await world.reconcile()).toMatchObject({ writes: ['main', 'status'], events: [], error: undefined });
    expect(stored(world).metadata.finalizers).toEqual([MACHINE_FINALIZER]);
    expect(refusalShownBy(stored(world))).toBeUndefined();

    // The same again is another refusal.
    const { metadata, ...rest } = stored(world);
    const resourceVersion = world.writer.nextVersion();
    world.machines.put({ ...rest, metadata: { ...metadata, finalizers: [], resourceVersion } });
    world.writer.failures.push(REFUSED);
    expect((await world.reconcile()).events).toHaveLength(1);
  });

  test('tells of a status that is refused by an Event, once, and fails', async () => {
    const world = scene(REFUSED, REFUSED, REFUSED, REFUSED);

    expect((await world.reconcile()).error).toBe(REFUSED);
    expect((await world.reconcile()).error).toBe(REFUSED);

    expect(world.events.map(({ message }) => message)).toEqual([
      'The API server refuses to record the status of the machine: a webhook says no',
    ]);
  });

  test('that meets a conflict writes nothing instead', async () => {
    const conflict = new ApiError(409, 'Conflict', 'changed');
    const world = scene(conflict);

    expect(await world.reconcile()).toMatchObject({ error: conflict, writes: ['main'], events: [] });
  });
});
