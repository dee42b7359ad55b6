import { describe, expect, test } from '@jest/globals';

import { HOUR, MINUTE, SECOND } from '../../../../test/durations.ts';
import { KeptMachine } from '../../../../test/kept-machine.ts';
import {
  CORDONED_BY_MAINTENANCE_ANNOTATION as MARK,
  MAINTENANCE_ANNOTATION as ASKED,
  MAINTENANCE_NODE_ANNOTATION as EMPTIED,
  MAINTENANCE_SINCE_ANNOTATION as SINCE,
  PRESERVE_ANNOTATION,
  SCALE_DOWN_DISABLED_ANNOTATION as HOLD,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION as HOLD_IS_OURS,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { isAvailable } from '../../replicas/machine-state.ts';
import { machineConditions } from '../explain/conditions.ts';
import { explain } from '../explain/explain.ts';

const HOOK = 'pre-drain.hook.machine.sapcloud.io/backup';
const ANNOTATIONS = [ASKED, SINCE, EMPTIED];

/** A machine for which maintenance is asked for. */
async function asked(): Promise<KeptMachine> {
  const kept = new KeptMachine();
  kept.annotateMachine(ASKED, 'true');
  await kept.rest();
  return kept;
}

/** One that is in maintenance. */
async function inMaintenance(): Promise<KeptMachine> {
  const kept = await asked();
  await kept.endDrains();
  await kept.rest();
  return kept;
}

const told = ({ events }: KeptMachine['world']): string[] => events.map(({ reason }) => reason);
const shown = (kept: KeptMachine): string =>
  `${kept.condition('Maintenance')?.status} ${kept.condition('Maintenance')?.reason}`;
const ofMachine = (kept: KeptMachine): string | undefined => {
  const conditions = machineConditions(kept.machine, kept.world.clock.now());
  const found = conditions.find(({ type }) => type === 'Maintenance');
  return found && `${found.status} ${found.reason}`;
};
/** What is stored of it. */
const saidOf = ({ machine: { status } }: KeptMachine): string | undefined => {
  const found = status?.machineConditions?.find(({ type }) => type === 'Maintenance');
  return found && `${found.status} ${found.reason}`;
};
const on = (kept: KeptMachine): Record<string, string> => {
  const all = { ...kept.node.metadata.annotations };
  return Object.fromEntries(Object.entries(all).filter(([key]) => [MARK, HOLD, HOLD_IS_OURS].includes(key)));
};
const record = (kept: KeptMachine): string[] =>
  ANNOTATIONS.filter((key) => kept.machine.metadata.annotations?.[key] !== undefined);
/** A policy keeps us from setting condition Maintenance of Nodes, and from nothing else. */
const refuseCondition = ({ world: { nodes } }: KeptMachine): void => {
  const patchStatus = nodes.patchStatus.bind(nodes);
  nodes.patchStatus = async (node, status) => {
    const { conditions = [] } = status as { conditions?: { type: string }[] };
    if (conditions.some(({ type }) => type === 'Maintenance'))
      throw new ApiError(403, 'Forbidden', 'a policy denies it');
    await patchStatus(node, status);
  };
};
const isCordoned = (kept: KeptMachine): boolean => kept.node.spec?.unschedulable === true;

describe('maintenance', () => {
  test('is recorded, then the Node is cordoned and drained, and only then it is said to be there', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(ASKED, 'true');
    await kept.pass();
    expect(record(kept)).toEqual([ASKED, SINCE]);
    expect(kept.world.nodes.done).toEqual([]);
    expect(isAvailable(kept.machine)).toBe(false);

    await kept.rest();
    expect(kept.world.drains.requests).toMatchObject([
      { barrier: 'marked-cordon', force: false, maxEvictRetries: Infinity },
    ]);
    expect(shown(kept)).toBe('False Draining');
    expect(ofMachine(kept)).toBe('False Draining');
    expect(on(kept)).toEqual({ [MARK]: 'true', [HOLD]: 'true', [HOLD_IS_OURS]: 'true' });

    await kept.endDrains();
    await kept.rest();
    expect(shown(kept)).toBe('True InMaintenance');
    expect(ofMachine(kept)).toBe('True InMaintenance');
    expect(kept.condition('Maintenance')?.message).toMatch(
      /^Node m-1 is cordoned and drained\. It ends when annotation /,
    );
    expect(record(kept)).toEqual([ASKED, SINCE, EMPTIED]);
    expect(isAvailable(kept.machine)).toBe(false);
    expect(kept.phase).toBe('Running');
    expect(told(kept.world)).toEqual(['MaintenanceStarted', 'Drained', 'InMaintenance']);
  });

  test('ends when nobody asks for it any more: the Node is as before', async () => {
    const kept = await inMaintenance();

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();

    expect(isCordoned(kept)).toBe(false);
    expect(on(kept)).toEqual({});
    expect(record(kept)).toEqual([]);
    expect(shown(kept)).toBe('False NotInMaintenance');
    expect(ofMachine(kept)).toBe('False NotInMaintenance');
    expect(isAvailable(kept.machine)).toBe(true);
    expect(told(kept.world).at(-1)).toBe('MaintenanceEnded');
  });

  test('is asked for on the Node too, and outlives the drain that a restart has lost', async () => {
    const kept = new KeptMachine();
    kept.annotateNode(ASKED, 'true');
    await kept.rest();
    kept.world.restart();
    await kept.rest();
    await kept.endDrains();
    await kept.rest();
    expect(shown(kept)).toBe('True InMaintenance');

    kept.annotateNode(ASKED, 'false');
    await kept.rest();

    expect(shown(kept)).toBe('False NotInMaintenance');
    expect(record(kept)).toEqual([]);
  });

  test('does not drain again what was drained, whoever goes on', async () => {
    const kept = await inMaintenance();
    const before = kept.world.drains.requests.length;

    kept.world.restart();
    await kept.rest();

    expect(kept.world.drains.requests).toHaveLength(before);
  });

  test('leaves a Node cordoned that somebody else has cordoned', async () => {
    const kept = new KeptMachine();
    kept.changeNode((n) => void (n.spec = { ...n.spec, unschedulable: true }));
    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    await kept.endDrains();
    await kept.rest();
    expect(on(kept)).not.toHaveProperty([MARK]);

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();

    expect(isCordoned(kept)).toBe(true);
    expect(shown(kept)).toBe('False NotInMaintenance');
  });

  test('takes a cordon that somebody has lifted for theirs', async () => {
    const kept = await inMaintenance();
    kept.changeNode((n) => void (n.spec = { ...n.spec, unschedulable: false }));
    await kept.rest();
    expect(on(kept)).not.toHaveProperty([MARK]);
    expect(kept.condition('Maintenance')?.message).toMatch(/drained, but has been uncordoned since/);
    kept.changeNode((n) => void (n.spec = { ...n.spec, unschedulable: true }));

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();

    expect(isCordoned(kept)).toBe(true);
  });

  test('drains a Node again that is as before the maintenance, because its cluster was set back', async () => {
    const kept = new KeptMachine();
    const before = structuredClone(kept.node);
    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    await kept.endDrains();
    await kept.rest();

    kept.world.nodes.cache.put(before);
    kept.changeNode(() => undefined);
    await kept.rest();
    expect([shown(kept), isCordoned(kept)]).toEqual(['False Draining', true]);
    await kept.endDrains();
    await kept.rest();

    expect(shown(kept)).toBe('True InMaintenance');
    expect(kept.world.drains.requests).toHaveLength(2);
  });

  test('waits for hooks, and says so before anything happens to the Node', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(HOOK, '');
    kept.annotateMachine('pre-drain.delete.hook.machine.cluster.x-k8s.io/other', '');
    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    expect(shown(kept)).toBe('False WaitingForHooks');
    expect(kept.condition('Maintenance')?.message).toBe(`Waiting for hooks: ${HOOK}.`);
    expect(kept.world.drains.requests).toEqual([]);
    expect(isCordoned(kept)).toBe(false);
    expect(told(kept.world)).toEqual(['MaintenanceStarted', 'WaitingForHooks']);

    kept.annotateMachine(HOOK, undefined);
    await kept.rest();
    expect(shown(kept)).toBe('False Draining');

    kept.annotateMachine(HOOK, '');
    await kept.rest();
    expect(shown(kept)).toBe('False WaitingForHooks');
    expect(kept.world.activities.get(kept.machine.metadata.uid, 'drain')).toBeUndefined();
  });

  // promise: maintenance/budget-disruptions-holds-up
  // promise: openstack/maintenance/blocked-budget-never-forced
  test('is never forced by the time: a drain that ends with pods left has failed, and is tried again', async () => {
    const kept = await asked();
    kept.world.clock.advance(10 * HOUR);
    await kept.rest();
    expect(kept.world.drains.requests).toHaveLength(1);
    const blocked = [{ pod: 'shop/cart-0', reason: 'disruption-budget', detail: 'cart' }] as const;

    await kept.endDrains({ kind: 'incomplete', progress: { remainingPods: 1, blocked } });
    await kept.rest();

    expect(shown(kept)).toBe('False DrainFailed');
    expect(kept.condition('Maintenance')?.message).toContain(
      'shop/cart-0 (PodDisruptionBudget cart currently allows no eviction)',
    );
    expect(ofMachine(kept)).toBe('False DrainFailed');
    expect(told(kept.world)).toContain('DrainFailed');
    kept.world.clock.advance(5 * SECOND);
    await kept.rest();
    expect(kept.world.drains.requests).toHaveLength(2);
    expect(kept.world.drains.requests[1]).toMatchObject({ force: false });
    expect(shown(kept)).toBe('False DrainFailed');
  });

  test('is forced by label', async () => {
    const kept = await asked();

    kept.changeMachine((m) => void (m.metadata.labels = { ...m.metadata.labels, 'force-drain': 'True' }));
    await kept.pass();
    await kept.pass();
    await kept.rest();

    expect(kept.world.drains.requests.at(-1)).toMatchObject({ force: true });
    expect(told(kept.world)).toContain('DrainForced');
  });

  test('names the pods that a drain waits for, at a calm pace', async () => {
    const kept = await asked();
    const blocked = [{ pod: 'shop/cart-0', reason: 'disruption-budget', detail: 'cart' }] as const;
    kept.world.drains.report({ remainingPods: 1, blocked });
    await kept.rest();
    expect(kept.condition('Maintenance')?.message).toMatch(/its pods are being evicted/);

    kept.world.clock.advance(2 * SECOND);
    await kept.rest();

    expect(kept.condition('Maintenance')?.message).toBe(
      'Waiting for 1 pod: shop/cart-0 (PodDisruptionBudget cart currently allows no eviction).',
    );
    expect(shown(kept)).toBe('False DrainBlocked');
    expect(explain(kept.machine, kept.world.clock.now()).reason).toBe('DrainBlocked');
    expect(told(kept.world)).toContain('DrainBlocked');
    const [event] = kept.world.events.filter(({ reason }) => reason === 'DrainBlocked');
    expect(event?.message).not.toContain('are deleted at');
  });

  test('is there at once without a Node, and drains one that comes', async () => {
    const kept = new KeptMachine();
    const { node } = kept;
    kept.world.nodes.cache.remove('m-1');
    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    expect(ofMachine(kept)).toBe('True InMaintenance');
    expect(kept.world.drains.requests).toEqual([]);

    kept.world.nodes.cache.put(node);
    await kept.rest();

    expect(shown(kept)).toBe('False Draining');
    expect(ofMachine(kept)).toBe('False Draining');
  });

  test('is there at once without a target cluster', async () => {
    const kept = new KeptMachine();
    kept.world.hasTarget = false;
    kept.annotateMachine(ASKED, 'true');

    await kept.rest();
    expect(ofMachine(kept)).toBe('True InMaintenance');
    kept.annotateMachine(ASKED, undefined);
    await kept.rest();

    expect(record(kept)).toEqual([]);
  });

  test('ends for a machine whose Node had asked for it and is gone: it has its whole health timeout', async () => {
    const kept = new KeptMachine();
    kept.annotateNode(ASKED, 'true');
    await kept.rest();
    await kept.endDrains();
    await kept.rest();
    kept.world.clock.advance(HOUR);

    kept.world.nodes.cache.remove('m-1');
    await kept.rest();

    expect(record(kept)).toEqual([]);
    expect(kept.phase).toBe('Unknown');
    kept.world.clock.advance(9 * MINUTE);
    await kept.rest();
    expect(kept.phase).toBe('Unknown');
  });

  test.each(['yes', 'True', ''])(
    'is not asked for with %j: that is told where it stands, until it is corrected',
    async (value) => {
      const kept = new KeptMachine();
      kept.annotateMachine(ASKED, value);
      await kept.rest();
      expect(shown(kept)).toBe('False InvalidValue');
      expect(kept.condition('Maintenance')?.message).toBe(
        `Annotation machine.sapcloud.io/maintenance of the Machine is ${JSON.stringify(value)}, but must be true or false: it has no effect.`,
      );
      expect(ofMachine(kept)).toBe('False InvalidValue');
      expect(record(kept)).toEqual([ASKED]);
      expect(told(kept.world)).toEqual(['InvalidAnnotation']);
      expect(isAvailable(kept.machine)).toBe(true);

      kept.annotateMachine(ASKED, 'false');
      await kept.rest();
      expect(shown(kept)).toBe('False NotInMaintenance');
    },
  );

  test('tells of a wrong value on the Node too', async () => {
    const kept = new KeptMachine();
    kept.annotateNode(ASKED, 'now');

    await kept.rest();

    expect(ofMachine(kept)).toBe('False InvalidValue');
    expect(kept.world.events[0]?.message).toContain('of Node m-1 is "now"');
  });
});

describe('a machine in maintenance', () => {
  // promise: openstack/maintenance/exactly-clock
  test('is not replaced however long its Node is down, and has its whole health timeout afterwards', async () => {
    const kept = await inMaintenance();
    kept.setReady(false);
    await kept.rest();
    kept.world.clock.advance(3 * HOUR);
    await kept.rest();
    expect(kept.phase).toBe('Unknown');

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();
    expect(record(kept)).toEqual([]);
    kept.world.clock.advance(10 * MINUTE - 1);
    await kept.rest();
    expect(kept.phase).toBe('Unknown');

    kept.world.clock.advance(1);
    await kept.pass();
    expect(kept.phase).toBe('Failed');
  });

  test('that ends writes nothing each second while the API server refuses to record that', async () => {
    const kept = await inMaintenance();
    kept.setReady(false);
    await kept.rest();
    const since = kept.machine.status?.currentStatus?.lastUpdateTime;
    kept.world.clock.advance(3 * HOUR);
    kept.annotateMachine(ASKED, undefined);
    for (let i = 0; i < 8 && shown(kept) !== 'False NotInMaintenance'; i++) await kept.pass();

    for (let i = 0; i < 3; i++) {
      kept.world.clock.advance(SECOND);
      kept.world.writer.failures.push(new ApiError(403, 'Forbidden', 'denied'));
      await kept.pass();
      expect(kept.machine.status?.currentStatus?.lastUpdateTime).toBe(since);
    }
    kept.world.writer.failures.length = 0;
    await kept.rest();

    expect(record(kept)).toEqual([]);
    expect(kept.machine.status?.currentStatus?.lastUpdateTime).not.toBe(since);
  });

  test('has its whole health timeout also when the process ends while the maintenance does', async () => {
    const kept = await inMaintenance();
    kept.setReady(false);
    await kept.rest();
    kept.world.clock.advance(3 * HOUR);
    kept.annotateMachine(ASKED, undefined);

    for (let i = 0; i < 8; i++) {
      await kept.pass();
      kept.world.restart();
      kept.world.clock.advance(SECOND);
    }

    expect(record(kept)).toEqual([]);
    expect(kept.phase).toBe('Unknown');
  });

  test('is not replaced by a request on its Node that nobody has recorded yet', async () => {
    const kept = new KeptMachine();
    kept.setReady(false);
    await kept.rest();
    kept.world.clock.advance(HOUR);
    kept.annotateNode(ASKED, 'true');

    await kept.pass();

    expect(kept.phase).toBe('Unknown');
  });

  test('is not replaced by a request on its Node that only a live look shows', async () => {
    const kept = new KeptMachine();
    kept.setReady(false);
    await kept.rest();
    kept.world.clock.advance(HOUR);
    const { node } = kept;
    const metadata = { ...node.metadata, annotations: { ...node.metadata.annotations, [ASKED]: 'true' } };
    kept.world.nodes.live.set('m-1', { ...node, metadata });

    await kept.pass();

    expect(kept.phase).toBe('Unknown');
  });

  test('follows its Node: it is Unknown, and Running again', async () => {
    const kept = await inMaintenance();
    kept.setReady(false);
    await kept.rest();
    expect(kept.phase).toBe('Unknown');

    kept.setReady(true);
    await kept.rest();

    expect(kept.phase).toBe('Running');
    expect(shown(kept)).toBe('True InMaintenance');
  });

  test('has no timeout of an update in place either', async () => {
    const kept = await inMaintenance();
    kept.setPhase('InPlaceUpdating');
    kept.world.clock.advance(10 * HOUR);
    await kept.rest();
    expect(kept.phase).toBe('InPlaceUpdating');

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();
    expect(record(kept)).toEqual([]);
    expect(kept.phase).toBe('InPlaceUpdating');
  });

  test('keeps the autoscaler away, also when a rollout has let go of it', async () => {
    const kept = await inMaintenance();

    kept.annotateNode(HOLD, undefined);
    kept.annotateNode(HOLD_IS_OURS, undefined);
    await kept.rest();

    expect(on(kept)).toMatchObject({ [HOLD]: 'true', [HOLD_IS_OURS]: 'true' });
  });

  test('leaves the hold of a preservation that goes on', async () => {
    const kept = await inMaintenance();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    await kept.rest();

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();

    expect(on(kept)).toEqual({ [HOLD]: 'true', [HOLD_IS_OURS]: 'true' });
  });

  test('waits for the drain of an update in place that has begun', async () => {
    const kept = new KeptMachine();
    kept.labelNode('node.machine.sapcloud.io/candidate-for-update', 'true');
    kept.labelNode('node.machine.sapcloud.io/selected-for-update', 'true');
    await kept.rest();
    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    expect(shown(kept)).toBe('False Requested');
    expect(kept.world.drains.requests.map(({ barrier }) => barrier)).toEqual(['marked-cordon']);

    await kept.endDrains();
    await kept.rest();
    await kept.endDrains();
    await kept.rest();

    expect(shown(kept)).toBe('True InMaintenance');
    expect(kept.phase).toBe('InPlaceUpdating');
  });

  test('makes room for an update in place that a person selects, without a failure', async () => {
    const kept = await asked();
    kept.labelNode('node.machine.sapcloud.io/candidate-for-update', 'true');
    kept.labelNode('node.machine.sapcloud.io/selected-for-update', 'true');
    await kept.rest();
    expect(shown(kept)).toBe('False Requested');
    expect(told(kept.world)).not.toContain('DrainFailed');

    kept.labelNode('node.machine.sapcloud.io/selected-for-update', undefined);
    await kept.rest();
    await kept.endDrains();
    await kept.rest();

    expect(shown(kept)).toBe('True InMaintenance');
    expect(told(kept.world)).not.toContain('DrainFailed');
  });

  test('that ends while the Node is updated in place leaves it cordoned until that is over', async () => {
    const kept = await asked();
    await kept.endDrains();
    await kept.rest();
    kept.labelNode('node.machine.sapcloud.io/candidate-for-update', 'true');
    kept.labelNode('node.machine.sapcloud.io/selected-for-update', 'true');
    await kept.rest();
    await kept.endDrains();
    await kept.rest();
    expect(kept.phase).toBe('InPlaceUpdating');

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();
    expect([shown(kept), isCordoned(kept)]).toEqual(['False NotInMaintenance', true]);

    kept.labelNode('node.machine.sapcloud.io/update-result', 'successful');
    await kept.rest();
    expect([kept.phase, isCordoned(kept)]).toEqual(['Running', true]);

    for (const label of ['candidate-for-update', 'selected-for-update', 'update-result'])
      kept.labelNode(`node.machine.sapcloud.io/${label}`, undefined);
    await kept.rest();
    expect(isCordoned(kept)).toBe(false);
  });

  test('that ends uncordons a Node whose update in place had failed, if its labels are gone', async () => {
    const kept = new KeptMachine();
    const labels = ['candidate-for-update', 'selected-for-update', 'update-result'];
    const label = (value: string | undefined, ...names: readonly string[]): void =>
      names.forEach((name) => kept.labelNode(`node.machine.sapcloud.io/${name}`, value));
    label('true', 'candidate-for-update', 'selected-for-update');
    await kept.rest();
    await kept.endDrains();
    await kept.rest();
    label('failed', 'update-result');
    await kept.rest();
    label(undefined, ...labels);
    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    await kept.endDrains();
    await kept.rest();
    expect([shown(kept), isCordoned(kept)]).toEqual(['True InMaintenance', true]);

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();

    expect([kept.phase, kept.condition('InPlaceUpdate')?.reason]).toEqual(['InPlaceUpdateFailed', 'UpdateFailed']);
    expect([shown(kept), isCordoned(kept)]).toEqual(['False NotInMaintenance', false]);
  });

  test('does nothing to its Node while the cluster is out of reach', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(ASKED, 'true');
    await kept.pass();
    kept.world.nodes.failure = new GateClosedError('outage', 'target', 'out of reach');
    const seen = await kept.pass();
    expect(seen.error).toBeInstanceOf(GateClosedError);
    expect(isCordoned(kept)).toBe(false);

    kept.world.nodes.failure = undefined;
    await kept.rest();
    expect(shown(kept)).toBe('False Draining');
  });

  test.each<{ what: string; start: () => Promise<KeptMachine> }>([
    { what: 'shows it', start: inMaintenance },
    { what: 'never showed it', start: async () => new KeptMachine() },
    {
      what: 'shows the end of the one before',
      async start() {
        const kept = await inMaintenance();
        kept.annotateMachine(ASKED, undefined);
        await kept.rest();
        return kept;
      },
    },
  ])(
    'is said of the Machine, and ends, although the API server refuses the condition of the Node, which $what',
    async ({ start }) => {
      const kept = await start();
      const { clock } = kept.world;
      const shows = kept.condition('Maintenance');
      refuseCondition(kept);
      if (shows?.reason !== 'InMaintenance') {
        kept.annotateMachine(ASKED, 'true');
        await kept.rest();
        await kept.endDrains();
        await kept.rest();
      }
      expect(saidOf(kept)).toBe('True InMaintenance');
      kept.setReady(false);
      await kept.rest();
      clock.advance(3 * HOUR);
      expect([kept.phase, record(kept), isCordoned(kept)]).toEqual(['Unknown', [ASKED, SINCE, EMPTIED], true]);

      const before = told(kept.world).length;
      kept.annotateMachine(ASKED, undefined);
      await kept.rest();
      expect([record(kept), isCordoned(kept), on(kept), ofMachine(kept)]).toEqual([
        [],
        false,
        {},
        shows === undefined ? undefined : 'False NotInMaintenance',
      ]);
      expect(
        told(kept.world)
          .slice(before)
          .filter((reason) => reason === 'MaintenanceEnded'),
      ).toHaveLength(1);
      await kept.rest();
      expect(kept.phase).toBe('Unknown');
      clock.advance(HOUR);
      await kept.pass();
      expect(kept.phase).toBe('Failed');
    },
  );

  test('is not said to be there because the Node, whose condition is refused, still shows the last one', async () => {
    const kept = await inMaintenance();
    refuseCondition(kept);
    kept.annotateMachine(ASKED, undefined);
    await kept.rest();
    expect([record(kept), shown(kept), ofMachine(kept)]).toEqual([[], 'True InMaintenance', 'False NotInMaintenance']);

    kept.annotateMachine(ASKED, 'true');
    const said: unknown[] = [];
    for (let i = 0; i < 4; i++) {
      await kept.pass();
      said.push([record(kept), ofMachine(kept)]);
    }
    await kept.endDrains();
    await kept.rest();

    expect(said).toEqual(said.map(() => [[ASKED, SINCE], 'False Requested']));
    expect(ofMachine(kept)).toBe('True InMaintenance');
  });

  test('takes no hold of a rollout from a Node that cannot be told that it is over', async () => {
    const kept = await inMaintenance();
    const set = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineSet', name: 'set-1', uid: 'uid-of-set-1' };
    kept.changeMachine((m) => void (m.metadata.ownerReferences = [{ ...set, controller: true }]));
    refuseCondition(kept);
    kept.annotateMachine(ASKED, undefined);
    await kept.rest();
    expect([record(kept), on(kept)]).toEqual([[], {}]);

    kept.annotateNode(HOLD, 'true');
    kept.annotateNode(HOLD_IS_OURS, 'true');
    await kept.rest();

    expect(on(kept)).toEqual({ [HOLD]: 'true', [HOLD_IS_OURS]: 'true' });
  });

  test('does not say that it is over while neither the Node can be uncordoned nor its condition be set', async () => {
    const kept = new KeptMachine();
    refuseCondition(kept);
    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    const message = (): string | undefined =>
      kept.machine.status?.machineConditions?.find(({ type }) => type === 'Maintenance')?.message;
    kept.world.nodes.failure = new ApiError(403, 'Forbidden', 'a webhook denies it');
    kept.annotateMachine(ASKED, undefined);
    for (let i = 0; i < 4; i++) await kept.pass();
    expect(record(kept)).toEqual([SINCE, EMPTIED]);
    expect(message()).toMatch(/Uncordoning the Node\.$/);

    kept.world.nodes.failure = undefined;
    await kept.rest();
    expect([record(kept), isCordoned(kept), message()]).toEqual([[], false, undefined]);
  });

  test('stays until its Node can be given back', async () => {
    const kept = await inMaintenance();
    kept.world.nodes.failure = new ApiError(403, 'Forbidden', 'a webhook denies it');
    kept.annotateMachine(ASKED, undefined);
    for (let i = 0; i < 4; i++) await kept.pass();
    expect(record(kept)).toEqual([SINCE, EMPTIED]);
    expect(told(kept.world).filter((reason) => reason === 'MaintenanceRefused')).toHaveLength(1);
    expect(isCordoned(kept)).toBe(true);

    kept.world.nodes.failure = undefined;
    await kept.rest();

    expect(record(kept)).toEqual([]);
    expect(isCordoned(kept)).toBe(false);
  });

  test('is given back before it is forgotten when nobody knows any more that it was taken', async () => {
    const kept = await inMaintenance();
    kept.changeMachine((m) => {
      for (const key of ANNOTATIONS) delete m.metadata.annotations?.[key];
    });

    await kept.rest();

    expect(isCordoned(kept)).toBe(false);
    expect(shown(kept)).toBe('False NotInMaintenance');
  });

  test('whose drain is withdrawn has its Node back only when that has ended', async () => {
    const kept = await asked();

    kept.annotateMachine(ASKED, undefined);
    await kept.rest();

    expect(kept.world.activities.get(kept.machine.metadata.uid, 'drain')).toBeUndefined();
    expect(isCordoned(kept)).toBe(false);
    expect(record(kept)).toEqual([]);
    expect(told(kept.world)).toEqual(['MaintenanceStarted', 'MaintenanceEnded']);
  });

  test('is in maintenance once more when it is asked again before all is as before', async () => {
    const kept = await inMaintenance();
    kept.annotateMachine(ASKED, undefined);
    await kept.pass();
    await kept.pass();
    expect(isCordoned(kept)).toBe(false);

    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    await kept.endDrains();
    await kept.rest();

    expect(shown(kept)).toBe('True InMaintenance');
    expect(isCordoned(kept)).toBe(true);
  });

  test('whose Node shows another machine has no Node', async () => {
    const kept = new KeptMachine();
    const { world, machine } = kept;
    const metadata = { ...machine.metadata, name: 'm-2', uid: 'uid-of-m-2', annotations: { [ASKED]: 'true' } };
    world.machines.put({ ...machine, metadata });

    for (let i = 0; i < 4; i++) await world.reconcile('default/m-2');

    const now = world.machines.get('default/m-2');
    expect(now?.metadata.annotations).toHaveProperty([EMPTIED], 'none');
    expect(world.drains.requests).toEqual([]);
    expect(isCordoned(kept)).toBe(false);
  });

  test('that failed before and is preserved is emptied by its preservation first', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    kept.fail();
    await kept.rest();
    kept.annotateMachine(ASKED, 'true');
    await kept.rest();
    expect(shown(kept)).toBe('False Requested');
    expect(kept.world.drains.requests).toHaveLength(1);

    for (let i = 0; i < 2; i++) {
      await kept.endDrains();
      await kept.rest();
    }

    expect(shown(kept)).toBe('True InMaintenance');
    expect(kept.phase).toBe('Failed');
  });

  test('is deleted as any other: nothing is skipped', async () => {
    const kept = await inMaintenance();
    const before = kept.world.drains.requests.length;
    kept.changeMachine((m) => void (m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'));

    for (let i = 0; i < 3; i++) {
      await kept.world.reconcile();
      await kept.world.settle();
    }

    expect(kept.world.drains.requests.slice(before)).toMatchObject([{ barrier: 'deletion-cordon', nodeName: 'm-1' }]);
    expect(kept.machine.status?.lastOperation?.description).toContain('Initiate node drain');
  });

  test('costs no writes while nothing happens', async () => {
    const kept = await inMaintenance();
    const before = [kept.world.writes, kept.world.nodes.done.length];

    kept.world.clock.advance(HOUR);
    await kept.pass();

    expect([kept.world.writes, kept.world.nodes.done.length]).toEqual(before);
  });
});
