import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { HOUR, MINUTE } from '../../../../test/durations.ts';
import { KeptMachine, KEPT_ACTIONS, type KeptAction } from '../../../../test/kept-machine.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  CORDONED_BY_MAINTENANCE_ANNOTATION,
  FORCE_DRAIN_LABEL,
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
  MAINTENANCE_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRESERVED_TAINT,
  SCALE_DOWN_DISABLED_ANNOTATION,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';

const OWNER = { apiVersion: API_VERSION, kind: 'MachineSet', name: 'set-1', uid: 'set-uid', controller: true };

const expiryOf = ({ machine }: KeptMachine): string | undefined =>
  machine.status?.currentStatus?.preserveExpiryTime ?? undefined;
const reasons = ({ world }: KeptMachine): string[] => world.events.map(({ reason }) => reason);
const ofNode = ({ node }: KeptMachine, key: string): string | undefined => node.metadata.annotations?.[key];
const ofMachine = ({ machine }: KeptMachine, key: string): string | undefined => machine.metadata.annotations?.[key];
const isHeld = (kept: KeptMachine): boolean => ofNode(kept, SCALE_DOWN_DISABLED_ANNOTATION) === 'true';

/** Preserved at failure, its Node drained. */
async function preservedFailed(value = 'when-failed'): Promise<KeptMachine> {
  const kept = new KeptMachine((m) => (m.metadata.ownerReferences = [OWNER]));
  kept.annotateMachine(PRESERVE_ANNOTATION, value);
  kept.fail();
  await kept.rest();
  await kept.endDrains();
  await kept.rest();
  return kept;
}

describe('a machine that works and is asked to be preserved', () => {
  test.each([
    { where: 'on the Machine', annotate: (kept: KeptMachine) => kept.annotateMachine(PRESERVE_ANNOTATION, 'now') },
    { where: 'on its Node', annotate: (kept: KeptMachine) => kept.annotateNode(PRESERVE_ANNOTATION, 'now') },
  ])('$where gets an expiry time, keeps the autoscaler away and says so', async ({ annotate }) => {
    const kept = new KeptMachine();
    annotate(kept);

    await kept.rest();

    expect(expiryOf(kept)).toBe('2026-01-05T00:00:00Z'); // 96 h
    expect(kept.phase).toBe('Running');
    expect(isHeld(kept)).toBe(true);
    expect(ofNode(kept, SCALE_DOWN_DISABLED_BY_US_ANNOTATION)).toBe('true');
    expect(kept.condition('Preserved')).toMatchObject({
      status: 'True',
      reason: 'Preserved by user.',
      message: 'Machine preserved until 2026-01-05 00:00:00 +0000 UTC.',
    });
    expect(kept.isTainted(PRESERVED_TAINT)).toBe(false);
    expect(kept.world.drains.requests).toEqual([]);
    expect(reasons(kept)).toEqual(['Preserved']);
  });

  test('is told its own time by the spec', async () => {
    const kept = new KeptMachine((m) => (m.spec.machinePreserveTimeout = '90m'));
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');

    const { result } = await kept.rest();

    expect(expiryOf(kept)).toBe('2026-01-01T01:30:00Z');
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 90 * MINUTE });
  });

  test('has its expiry time recorded before its Node is touched', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    kept.world.losesWrites = true;

    await kept.pass();
    await kept.pass();

    expect(kept.world.nodes.patches).toEqual([]);
  });

  test('is preserved before it has a Node, and without a target cluster', async () => {
    const kept = new KeptMachine((m) => (m.metadata.labels = {}));
    kept.world.hasTarget = false;
    kept.setPhase('Available');
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');

    await kept.rest();

    expect(expiryOf(kept)).toBeDefined();
    expect(kept.world.nodes.done).toEqual([]);
  });

  test("leaves a user's own annotation for the autoscaler alone, before and after", async () => {
    const kept = new KeptMachine();
    kept.annotateNode(SCALE_DOWN_DISABLED_ANNOTATION, 'true');
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    expect(ofNode(kept, SCALE_DOWN_DISABLED_BY_US_ANNOTATION)).toBeUndefined();

    kept.annotateMachine(PRESERVE_ANNOTATION, undefined);
    await kept.rest();

    expect(isHeld(kept)).toBe(true);
  });

  test('is as before when its time is over, and is not preserved again', async () => {
    const kept = new KeptMachine();
    kept.annotateNode(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    expect(ofMachine(kept, LAST_APPLIED_NODE_PRESERVE_ANNOTATION)).toBe('now');

    kept.world.clock.advance(96 * HOUR);
    await kept.rest();

    expect(expiryOf(kept)).toBeUndefined();
    expect(ofNode(kept, PRESERVE_ANNOTATION)).toBeUndefined();
    expect(ofMachine(kept, LAST_APPLIED_NODE_PRESERVE_ANNOTATION)).toBeUndefined();
    expect(isHeld(kept)).toBe(false);
    expect(kept.condition('Preserved')).toMatchObject({ status: 'False', reason: 'Preservation stopped.' });
    expect(reasons(kept)).toEqual(['Preserved', 'PreservationEnded']);
  });

  test('has its marks taken from its own Node only, and only as it was read', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    kept.world.nodes.patches.length = 0;
    kept.annotateMachine(PRESERVE_ANNOTATION, undefined);
    const other = structuredClone(kept.node);
    other.metadata.uid = 'of another';
    kept.world.nodes.live.set('m-1', other);
    kept.world.losesWrites = true;

    await kept.pass();
    expect(kept.world.nodes.patches).toEqual([]);

    kept.world.nodes.live.clear();
    const { resourceVersion } = kept.node.metadata;
    await kept.pass();
    expect(kept.world.nodes.patches).toMatchObject([{ metadata: { resourceVersion } }]);
  });

  test('comes back to the scaler as soon as the request is taken back', async () => {
    const kept = new KeptMachine();
    kept.annotateNode(PRESERVE_ANNOTATION, 'now');
    await kept.rest();

    kept.annotateNode(PRESERVE_ANNOTATION, undefined);
    await kept.rest();

    expect(expiryOf(kept)).toBeUndefined();
    expect(ofMachine(kept, LAST_APPLIED_NODE_PRESERVE_ANNOTATION)).toBeUndefined();
    expect(isHeld(kept)).toBe(false);
  });
});

describe('a machine that fails', () => {
  test('when-failed: is kept, tainted and drained', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'when-failed');
    await kept.rest();
    expect(expiryOf(kept)).toBeUndefined();

    kept.fail();
    await kept.rest();

    expect(kept.world.drains.requests).toHaveLength(1);
    expect(kept.world.drains.requests[0]).toMatchObject({
      barrier: { taint: { key: PRESERVED_TAINT, effect: 'NoSchedule' } },
      force: false,
      deadlineMs: kept.world.clock.now() + 2 * HOUR,
    });
    expect(kept.world.drains.requests[0]).not.toHaveProperty('nodeCondition');
    expect(kept.condition('Preserved')).toBeUndefined();

    await kept.endDrains();
    await kept.rest();
    expect(kept.phase).toBe('Failed');
    expect(kept.condition('Preserved')).toMatchObject({
      status: 'True',
      message: 'Preserved node drained successfully. Machine preserved until 2026-01-05 00:00:00 +0000 UTC.',
    });
    expect(kept.world.drains.requests).toHaveLength(1);
    expect(kept.world.measured).toEqual(['drained 0']);
    expect(reasons(kept)).toEqual(['Preserved', 'Drained']);
  });

  test('auto-preserved: says that nobody asked', async () => {
    const kept = await preservedFailed('auto-preserved');

    expect(kept.condition('Preserved')).toMatchObject({ status: 'True', reason: 'Preserved by MCM.' });
    expect(kept.world.events[0]?.message).toContain('its MachineSet preserves failed machines');
  });

  // MCM fault 11: a drain that failed twice counted as done, and was tried again every 10 min.
  test('is drained again soon when that failed, and only success counts', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'when-failed');
    kept.fail();
    await kept.rest();
    const progress = { remainingPods: 1, blocked: [] };

    for (let i = 1; i <= 3; i++) {
      await kept.endDrains({ kind: 'incomplete', progress });
      await kept.rest();
      expect(kept.condition('Preserved')).toMatchObject({
        status: 'False',
        message: 'Preserved node could not be drained. Machine preserved until 2026-01-05 00:00:00 +0000 UTC.',
      });
      kept.world.clock.advance(30_000);
      await kept.rest();
      expect(kept.world.drains.requests).toHaveLength(i + 1);
    }
    await kept.endDrains();
    await kept.rest();

    expect(kept.condition('Preserved')?.status).toBe('True');
    expect(reasons(kept).filter((reason) => reason === 'DrainFailed')).toHaveLength(1);
  });

  test.each([
    {
      what: 'by its label',
      prepare: (kept: KeptMachine) =>
        kept.changeMachine((m) => ((m.metadata.labels ??= {})[FORCE_DRAIN_LABEL] = 'True')),
      forced: true,
    },
    {
      what: 'by a label that says something else',
      prepare: (kept: KeptMachine) =>
        kept.changeMachine((m) => ((m.metadata.labels ??= {})[FORCE_DRAIN_LABEL] = 'true')),
      forced: false,
    },
    {
      what: 'past the drain timeout, counted from the failure',
      prepare: (kept: KeptMachine) => kept.world.clock.advance(2 * HOUR),
      forced: true,
    },
    {
      what: 'when its Node was not ready for 5 min',
      prepare: (kept: KeptMachine) => {
        kept.changeNode((n) => {
          const at = '2025-12-31T23:00:00Z';
          n.status = { conditions: [{ type: 'Ready', status: 'Unknown', lastTransitionTime: at }] };
        });
      },
      forced: true,
    },
  ])('is drained by force $what: $forced', async ({ prepare, forced }) => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'when-failed');
    kept.fail();
    await kept.pass(); // preserved
    prepare(kept);

    await kept.rest();
    await kept.rest();

    expect(kept.world.drains.requests.map(({ force }) => force)).toEqual([forced]);
    expect(reasons(kept).includes('DrainForced')).toBe(forced);
  });

  test('is drained by force only after a live look', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'when-failed');
    kept.fail();
    await kept.pass();
    kept.world.nodes.live.set('m-1', structuredClone({ ...kept.node, status: { conditions: [] } }));
    kept.changeNode((n) => {
      n.status = { conditions: [{ type: 'Ready', status: 'Unknown', lastTransitionTime: '2025-12-31T23:00:00Z' }] };
    });

    await kept.rest();

    expect(kept.world.drains.requests.map(({ force }) => force)).toEqual([false]);
  });

  test('is not drained by force in the grace after an outage, when all Nodes look broken', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'when-failed');
    kept.fail();
    await kept.pass();
    kept.world.graceLeftMs = MINUTE;
    kept.changeNode((n) => {
      n.status = { conditions: [{ type: 'Ready', status: 'Unknown', lastTransitionTime: '2025-12-31T23:00:00Z' }] };
    });

    await kept.rest();

    expect(kept.world.drains.requests.map(({ force }) => force)).toEqual([false]);
  });

  test('is drained anew after a restart in the middle of it', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    kept.fail();
    await kept.rest();
    const expiry = expiryOf(kept);
    kept.world.restart();

    await kept.rest();
    await kept.endDrains();
    await kept.rest();

    expect(kept.world.drains.requests).toHaveLength(2);
    expect(kept.world.drains.requests.map(({ deadlineMs }) => deadlineMs)).toEqual(
      Array(2).fill(kept.world.drains.requests[0]?.deadlineMs),
    );
    expect(kept.condition('Preserved')?.status).toBe('True');
    expect(expiryOf(kept)).toBe(expiry);
  });

  test('whose Node is gone is kept as it was asked on that Node', async () => {
    const kept = await preservedFailed('when-failed');
    kept.annotateNode(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    kept.world.nodes.cache.remove('m-1');

    await kept.rest();

    expect(expiryOf(kept)).toBeDefined();
    expect(kept.phase).toBe('Failed');
  });
});

describe('a preserved failed machine whose Node recovers', () => {
  test('works again, takes pods again, and is preserved at the next failure (when-failed)', async () => {
    const kept = await preservedFailed();

    kept.setReady(true);
    await kept.rest();

    expect(kept.phase).toBe('Running');
    expect(expiryOf(kept)).toBeUndefined();
    expect(kept.isTainted(PRESERVED_TAINT)).toBe(false);
    expect(isHeld(kept)).toBe(false);
    expect(kept.condition('Preserved')).toMatchObject({ status: 'False', reason: 'Preservation stopped.' });
    expect(ofMachine(kept, PRESERVE_ANNOTATION)).toBe('when-failed');
    expect(reasons(kept)).toEqual(['Preserved', 'Drained', 'NodeRejoined', 'PreservationEnded']);

    kept.fail();
    await kept.rest();
    expect(expiryOf(kept)).toBeDefined();
    expect(kept.world.drains.requests).toHaveLength(2);
  });

  test('is given back to the pods only once that is recorded, and only as it was read', async () => {
    const kept = await preservedFailed('now');
    kept.setReady(true);
    kept.world.losesWrites = true;
    for (let i = 0; i < 3; i++) await kept.pass();
    expect(kept.isTainted(PRESERVED_TAINT)).toBe(true);

    kept.world.losesWrites = false;
    await kept.pass();
    const { resourceVersion } = kept.node.metadata;
    kept.world.nodes.patches.length = 0;
    await kept.rest();

    expect(kept.isTainted(PRESERVED_TAINT)).toBe(false);
    expect(kept.world.nodes.patches.filter((patch) => 'spec' in patch)).toMatchObject([
      { metadata: { resourceVersion } },
    ]);
  });

  test('is drained again when it fails a second time (now)', async () => {
    const kept = await preservedFailed('now');
    kept.setReady(true);
    await kept.rest();
    expect(kept.isTainted(PRESERVED_TAINT)).toBe(false);
    expect(expiryOf(kept)).toBeDefined();
    expect(kept.condition('Preserved')?.message).toBe('Machine preserved until 2026-01-05 00:00:00 +0000 UTC.');

    kept.fail();
    await kept.rest();

    expect(kept.world.drains.requests).toHaveLength(2);
    expect(kept.isTainted(PRESERVED_TAINT)).toBe(true);
  });

  test('gives its place in the set back (auto-preserved)', async () => {
    const kept = await preservedFailed('auto-preserved');
    kept.setReady(true);

    await kept.rest();

    expect(ofMachine(kept, PRESERVE_ANNOTATION)).toBeUndefined();
    expect(expiryOf(kept)).toBeUndefined();
  });

  test('gives its place back also when it recovers before its preservation had begun', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'auto-preserved');

    await kept.rest();

    expect(ofMachine(kept, PRESERVE_ANNOTATION)).toBeUndefined();
    expect(reasons(kept)).toEqual([]);
  });

  test('ends a drain that is not over yet', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    kept.fail();
    await kept.rest();

    kept.setReady(true);
    await kept.rest();

    expect(kept.world.activities.get(kept.machine.metadata.uid, 'drain')).toBeUndefined();
    expect(kept.isTainted(PRESERVED_TAINT)).toBe(false);
  });
});

describe('a preserved failed machine whose time is over', () => {
  test('of a MachineSet says so to its set, and its Node is as before', async () => {
    const kept = await preservedFailed('auto-preserved');
    kept.world.clock.advance(96 * HOUR);

    await kept.rest();

    expect(ofMachine(kept, PRESERVE_ANNOTATION)).toBeUndefined();
    expect(fromTimestamp(expiryOf(kept))).toBeLessThanOrEqual(kept.world.clock.now());
    expect(kept.isTainted(PRESERVED_TAINT)).toBe(false);
    expect(isHeld(kept)).toBe(false);
    expect(reasons(kept).filter((reason) => reason === 'PreservationEnded')).toHaveLength(1);

    kept.setReady(true);
    await kept.rest();
    expect(kept.phase).toBe('Running');
    expect(expiryOf(kept)).toBeUndefined();
  });

  test('of nobody is no longer preserved', async () => {
    const kept = await preservedFailed();
    kept.changeMachine((m) => delete m.metadata.ownerReferences);
    kept.world.clock.advance(96 * HOUR);

    await kept.rest();

    expect(expiryOf(kept)).toBeUndefined();
    expect(kept.phase).toBe('Failed');
  });

  test('has not, when somebody asks anew at that moment', async () => {
    const kept = await preservedFailed('now');
    kept.annotateNode(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    const asked = structuredClone(kept.node);
    (asked.metadata.annotations ??= {})[PRESERVE_ANNOTATION] = 'when-failed';
    kept.world.nodes.live.set('m-1', asked);
    kept.world.clock.advance(96 * HOUR);

    await kept.pass();
    await kept.pass();

    expect(ofNode(kept, PRESERVE_ANNOTATION)).toBe('now'); // not removed by us
    expect(ofMachine(kept, LAST_APPLIED_NODE_PRESERVE_ANNOTATION)).toBe('now');
  });
});

describe('values', () => {
  test("the Node's counts, and the Machine's goes", async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'when-failed');
    kept.annotateNode(PRESERVE_ANNOTATION, 'false');

    await kept.rest();

    expect(ofMachine(kept, PRESERVE_ANNOTATION)).toBeUndefined();
    expect(ofMachine(kept, LAST_APPLIED_NODE_PRESERVE_ANNOTATION)).toBe('false');
    expect(expiryOf(kept)).toBeUndefined();
  });

  test('what is said on the Machine while the value of the Node is taken back counts', async () => {
    const kept = new KeptMachine();
    kept.annotateNode(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    kept.annotateNode(PRESERVE_ANNOTATION, undefined);
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');

    await kept.rest();

    expect(expiryOf(kept)).toBeDefined();
    expect(ofMachine(kept, PRESERVE_ANNOTATION)).toBe('now');
  });

  test('that nobody understands are told of, once, and change nothing but that a time still ends', async () => {
    const kept = new KeptMachine();
    kept.annotateNode(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    kept.annotateNode(PRESERVE_ANNOTATION, 'forever');

    await kept.rest();
    await kept.rest();
    expect(expiryOf(kept)).toBeDefined();
    expect(reasons(kept)).toEqual(['Preserved', 'InvalidAnnotation']);
    expect(kept.world.events[1]?.message).toContain('preserve of Node m-1 is "forever", but must be one of');

    kept.world.clock.advance(96 * HOUR);
    await kept.rest();
    expect(expiryOf(kept)).toBeUndefined();
  });
});

/** What may happen to a machine, in any order. */
const ACTIONS: readonly KeptAction[] = [
  ...[undefined, 'now', 'when-failed', 'auto-preserved', 'false', 'nwo'].flatMap((value) => [
    (kept: KeptMachine) => kept.annotateMachine(PRESERVE_ANNOTATION, value),
    (kept: KeptMachine) => kept.annotateNode(PRESERVE_ANNOTATION, value),
  ]),
  (kept) => kept.fail(),
  (kept) => kept.setReady(true),
  (kept) => kept.setReady(false),
  (kept) => kept.world.clock.advance(30_000),
  (kept) => kept.world.clock.advance(50 * HOUR),
  ...KEPT_ACTIONS,
];

describe('a preservation of which the Node alone knows any more', () => {
  /** As after a restore of the control cluster: neither the request nor the expiry time is there. */
  async function forgotten(): Promise<KeptMachine> {
    const kept = await preservedFailed();
    kept.annotateMachine(PRESERVE_ANNOTATION, undefined);
    kept.changeMachine((m) => void (m.status = { ...m.status, currentStatus: { phase: 'Running' } }));
    kept.setReady(true);
    kept.world.events.length = 0;
    return kept;
  }

  test('ends: the Node is as before', async () => {
    const kept = await forgotten();
    expect([kept.isTainted(PRESERVED_TAINT), isHeld(kept)]).toEqual([true, true]);

    await kept.rest();

    expect([kept.isTainted(PRESERVED_TAINT), isHeld(kept), kept.condition('Preserved')?.status]).toEqual([
      false,
      false,
      'False',
    ]);
    expect(reasons(kept)).toEqual(['PreservationEnded']);
  });

  test('goes on while the Machine itself has its expiry time, which an old cache does not show', async () => {
    const kept = await forgotten();
    const live = structuredClone(kept.machine);
    live.status = { ...live.status, currentStatus: { preserveExpiryTime: '2026-01-05T00:00:00Z' } };
    kept.world.liveMachines.set('default/m-1', live);

    for (let i = 0; i < 3; i++) await kept.pass();

    expect(kept.isTainted(PRESERVED_TAINT)).toBe(true);
  });

  test('is asked for anew: it has its whole time', async () => {
    const kept = await forgotten();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');

    await kept.rest();

    expect(expiryOf(kept)).toBe('2026-01-05T00:00:00Z');
    expect([kept.isTainted(PRESERVED_TAINT), isHeld(kept)]).toEqual([false, true]);
  });
});

describe('a machine that v0.62 of the original has preserved', () => {
  const ORIGINAL_PROGRAM = 'machine-controller';
  const DRAINED = 'Preserved node drained successfully. Machine preserved until 2026-01-03 00:00:00 +0000 UTC.';
  const NOT_DRAINED = 'Preserved node could not be drained. Machine preserved until 2026-01-03 00:00:00 +0000 UTC.';

  /** Failed, as v0.62 leaves it: its Node is cordoned, and not tainted. */
  function takenOver(value = 'when-failed', managers = [ORIGINAL_PROGRAM], message = DRAINED): KeptMachine {
    const kept = new KeptMachine((m) => (m.metadata.ownerReferences = [OWNER]));
    kept.annotateMachine(PRESERVE_ANNOTATION, value);
    kept.fail();
    kept.changeMachine((m) => {
      m.status = { ...m.status, currentStatus: { phase: 'Failed', preserveExpiryTime: '2026-01-03T00:00:00Z' } };
    });
    kept.annotateNode(SCALE_DOWN_DISABLED_ANNOTATION, 'true');
    kept.annotateNode(SCALE_DOWN_DISABLED_BY_US_ANNOTATION, 'true');
    kept.changeNode((n) => {
      const status = message === DRAINED ? 'True' : 'False';
      const condition = { type: 'Preserved', status, reason: 'Preserved by user.', message };
      n.status = { conditions: [...(n.status?.conditions ?? []), condition] };
    });
    cordon(kept, managers);
    return kept;
  }

  function cordon(kept: KeptMachine, managers: readonly string[]): void {
    kept.changeNode((n) => {
      n.spec = { ...n.spec, unschedulable: true };
      const owners = managers.map((manager) => ({ manager, fieldsV1: { 'f:spec': { 'f:unschedulable': {} } } }));
      const kubelet = { manager: 'kubelet', fieldsV1: { 'f:spec': { 'f:providerID': {} } } };
      n.metadata.managedFields = [kubelet, { manager: ORIGINAL_PROGRAM, fieldsV1: {} }, ...owners];
    });
  }

  const isCordoned = (kept: KeptMachine): boolean => kept.node.spec?.unschedulable === true;

  async function recovers(kept: KeptMachine): Promise<void> {
    kept.setReady(true);
    await kept.rest();
    expect(kept.phase).toBe('Running');
  }

  test.each(['when-failed', 'auto-preserved', 'now'])('takes pods again once it works (%s)', async (value) => {
    const kept = takenOver(value);
    await kept.rest();
    expect([kept.phase, isCordoned(kept), kept.world.drains.requests.length]).toEqual(['Failed', true, 0]);

    await recovers(kept);

    expect([isCordoned(kept), ofNode(kept, CORDONED_BY_MAINTENANCE_ANNOTATION)]).toEqual([false, undefined]);
    expect(isHeld(kept)).toBe(value === 'now');
  });

  test('takes pods again after a drain that had failed', async () => {
    const kept = takenOver('when-failed', [ORIGINAL_PROGRAM], NOT_DRAINED);
    await kept.rest();
    await kept.endDrains();
    await kept.rest();
    expect([isCordoned(kept), kept.isTainted(PRESERVED_TAINT)]).toEqual([true, true]);

    await recovers(kept);

    expect([isCordoned(kept), kept.isTainted(PRESERVED_TAINT)]).toEqual([false, false]);
  });

  test('takes pods again although its preservation ended before it worked, or the process between any two writes', async () => {
    const kept = takenOver();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'false');
    await kept.rest();
    expect([expiryOf(kept), isCordoned(kept)]).toEqual([undefined, true]);

    kept.setReady(true);
    for (let i = 0; i < 10; i++) {
      kept.world.restart();
      await kept.pass();
    }

    expect([kept.phase, isCordoned(kept)]).toEqual(['Running', false]);
  });

  test.each([
    { who: 'a user', managers: ['kubectl-cordon'] },
    { who: 'it and whoever applies that', managers: [ORIGINAL_PROGRAM, 'argocd'] },
    { who: 'whom the API server has not recorded', managers: [] },
    { who: 'Machinist', managers: ['machinist'] },
  ])('stays cordoned when it was cordoned by $who', async ({ managers }) => {
    const kept = takenOver('when-failed', managers);

    await recovers(kept);
    kept.world.clock.advance(50 * HOUR);
    await kept.rest();

    expect(isCordoned(kept)).toBe(true);
    expect(ofNode(kept, CORDONED_BY_MAINTENANCE_ANNOTATION)).toBeUndefined();
  });

  test('stays cordoned when the original cordoned it for something else', async () => {
    const kept = new KeptMachine();
    cordon(kept, [ORIGINAL_PROGRAM]);

    await kept.rest();

    expect(isCordoned(kept)).toBe(true);
  });

  test('stays cordoned when a user cordons it after it has taken pods again', async () => {
    const kept = takenOver('now');
    await recovers(kept);

    cordon(kept, ['kubectl-cordon']);
    await kept.rest();

    expect(isCordoned(kept)).toBe(true);
  });

  test('stays cordoned while a maintenance needs that, and no longer', async () => {
    const kept = takenOver();
    kept.annotateMachine(MAINTENANCE_ANNOTATION, 'true');
    await recovers(kept);
    await kept.endDrains();
    await kept.rest();
    expect(isCordoned(kept)).toBe(true);

    kept.annotateMachine(MAINTENANCE_ANNOTATION, undefined);
    await kept.rest();

    expect(isCordoned(kept)).toBe(false);
  });

  test('stays cordoned while an update in place needs that, and no longer', async () => {
    const kept = takenOver();
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await recovers(kept);
    expect(isCordoned(kept)).toBe(true);

    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, undefined);
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, undefined);
    await kept.rest();

    expect(isCordoned(kept)).toBe(false);
  });

  test('stays cordoned as long as its Node says that it is drained', async () => {
    const kept = takenOver('now');
    const { nodes } = kept.world;
    const patchStatus = nodes.patchStatus.bind(nodes);
    nodes.patchStatus = () => Promise.reject(new ApiError(403, 'Forbidden', 'denied'));
    kept.setReady(true);
    for (let i = 0; i < 5; i++) await kept.pass();
    expect([kept.phase, isCordoned(kept)]).toEqual(['Running', true]);

    nodes.patchStatus = patchStatus;
    await kept.rest();

    expect(isCordoned(kept)).toBe(false);
  });

  test('says so when the API server refuses to have it uncordoned, and tries again', async () => {
    const kept = takenOver('now');
    kept.world.nodes.refuses = (change) => JSON.stringify(change).includes(CORDONED_BY_MAINTENANCE_ANNOTATION);
    kept.setReady(true);
    for (let i = 0; i < 4; i++) expect((await kept.pass()).error).toBeUndefined();
    expect(reasons(kept).filter((reason) => reason === 'NodeChangeRefused')).toHaveLength(1);

    kept.world.nodes.refuses = () => false;
    await kept.rest();

    expect(isCordoned(kept)).toBe(false);
  });
});

describe('a preservation of whose Node the API server refuses a change', () => {
  const denied = (): Promise<never> =>
    Promise.reject(new ApiError(403, 'Forbidden', 'admission webhook "x" denied the request'));

  test('drains it all the same, says so once, and does not hold up a maintenance', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'when-failed');
    kept.fail();
    const { nodes } = kept.world;
    const patch = nodes.patch.bind(nodes);
    nodes.patch = (one, change) => (JSON.stringify(change).includes('scale-down') ? denied() : patch(one, change));

    for (let i = 0; i < 4; i++) expect((await kept.pass()).error).toBeUndefined();
    kept.annotateMachine(MAINTENANCE_ANNOTATION, 'true');
    for (let i = 0; i < 4; i++) expect((await kept.pass()).error).toBeUndefined();

    expect(kept.world.drains.requests).toHaveLength(1);
    expect(reasons(kept).filter((reason) => reason === 'NodeChangeRefused')).toHaveLength(1);
    expect(reasons(kept)).toContain('MaintenanceStarted');
  });

  test('does not end before it can be given back', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    const { nodes } = kept.world;
    const patchStatus = nodes.patchStatus.bind(nodes);
    nodes.patchStatus = denied;
    kept.annotateMachine(PRESERVE_ANNOTATION, undefined);

    const { error, result } = await kept.pass();

    expect(error).toBeUndefined();
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 30_000 });
    expect(reasons(kept)).toContain('NodeChangeRefused');
    expect([expiryOf(kept) !== undefined, isHeld(kept)]).toEqual([true, true]);

    nodes.patchStatus = patchStatus;
    await kept.rest();
    expect([expiryOf(kept), isHeld(kept)]).toEqual([undefined, false]);
  });
});

test('whatever happened, a machine comes to rest as what it is: preserved, or not', async () => {
  const histories = fc.array(fc.nat(ACTIONS.length - 1), { maxLength: 40, size: 'max' });
  const property = fc.asyncProperty(histories, fc.boolean(), async (history, isOwned) => {
    const kept = new KeptMachine((m) => {
      if (isOwned) m.metadata.ownerReferences = [OWNER];
    });
    for (const action of history) await ACTIONS[action]?.(kept);
    if (ofNode(kept, PRESERVE_ANNOTATION) === 'nwo') kept.annotateNode(PRESERVE_ANNOTATION, undefined); // a mistake is corrected
    for (let i = 0; i < 3; i++) {
      await kept.rest();
      await kept.endDrains();
      kept.world.clock.advance(31_000);
    }
    await kept.rest();

    const expiryMs = fromTimestamp(expiryOf(kept));
    const isPreserved = expiryMs !== undefined && expiryMs > kept.world.clock.now();
    const isTainted = kept.isTainted(PRESERVED_TAINT);
    expect({
      isHeld: isHeld(kept),
      isTold: kept.condition('Preserved')?.status === 'True',
      // In other phases it depends on what was before.
      isTaintRight: !isTainted ? !(isPreserved && kept.phase === 'Failed') : isPreserved && kept.phase !== 'Running',
    }).toEqual({ isHeld: isPreserved, isTold: isPreserved, isTaintRight: true });
    expect(kept.world.activities.get(kept.machine.metadata.uid, 'drain')).toBeUndefined();
  });
  await fc.assert(property, { numRuns: 150 });
});
