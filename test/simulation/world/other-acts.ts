import {
  CANDIDATE_FOR_UPDATE_LABEL,
  DEFAULT_PRIORITY,
  DELETION_POLICY_ANNOTATION,
  EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
  LAST_SCALER_CHANGE_ANNOTATION,
  MAINTENANCE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  MAX_REPLACEMENTS_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
  RETRY_ANNOTATION,
  SCALE_DOWN_DISABLED_ANNOTATION,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
  TRIGGER_DELETION_ANNOTATION,
  UNFREEZE_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
  UPGRADE_INDEX_ANNOTATION,
} from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { fromTimestamp, toTimestamp } from '../../../pkg/base/clock/clock.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import { drawInPlace, type ActTable } from './acts.ts';
import type { Ledger } from './ledger.ts';
import { type MachinesWorld, POOL } from './machines-world.ts';
import { integerIn, oneOf } from './seeded-random.ts';
import { isPrepared, preparedSinceMs } from './wishes.ts';

/** After this time somebody looks at a deletion, or its preparation, whose drain does not come to its end. */
const STUCK_MS = 15 * 60_000;

/** What is forced leaves a VM behind, which is found where somebody looks for such. */
const POLICIES = ['graceful', 'unsafe', 'forced'];
/** The largest size that users ask for else. */
const MOST_REPLICAS = 10;
/** With which nothing could be replaced, or everything at once. */
const ODD_LIMITS = [
  { maxSurge: 0, maxUnavailable: 0 },
  { maxSurge: '0%', maxUnavailable: '0%' },
  { maxSurge: 0, maxUnavailable: '1%' },
  { maxSurge: 2_147_483_647, maxUnavailable: 0 },
  { maxSurge: '999999999%', maxUnavailable: '100%' },
  { maxSurge: 1, maxUnavailable: 2_147_483_647 },
];
const NONSENSE = ['', 'nonsense', '-1', 'NaN', '1e9', '99999999999999999999', '{', '\u0000', ' true'];
/** What the program reads of annotations that users set, and is none of what they may say. Times may be any. */
const GARBAGE: Readonly<Record<string, readonly string[]>> = {
  [PRESERVE_ANNOTATION]: NONSENSE,
  [MAINTENANCE_ANNOTATION]: NONSENSE,
  [PREPARE_DELETION_ANNOTATION]: NONSENSE,
  [DELETION_POLICY_ANNOTATION]: NONSENSE,
  [PRIORITY_ANNOTATION]: [...NONSENSE, '1'],
  [UPGRADE_INDEX_ANNOTATION]: [...NONSENSE, '1'],
  [MARKED_FOR_DELETION_TIME_ANNOTATION]: [...NONSENSE, '2026-01-01T00:00:00Z'],
  [EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]: NONSENSE,
  [UPDATE_ORDER_ANNOTATION]: [...NONSENSE, 'group/1'],
  [MAX_REPLACEMENTS_ANNOTATION]: ['', 'nonsense', '-1', 'NaN', '{', '1e9', '0'],
  [TRIGGER_DELETION_ANNOTATION]: [...NONSENSE, ',', '~', 'nobody~0001-01-01T00:00:00Z'],
  [LAST_SCALER_CHANGE_ANNOTATION]: NONSENSE,
  [UNFREEZE_ANNOTATION]: NONSENSE,
  [RETRY_ANNOTATION]: NONSENSE,
};

/** What of that users leave. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  [PREPARE_DELETION_ANNOTATION]: ['true'],
  [DELETION_POLICY_ANNOTATION]: POLICIES,
  [PRIORITY_ANNOTATION]: [DEFAULT_PRIORITY],
};

/** What users do to a pool beside what changes its size and template, and only in some worlds. */
export const OTHER_ACTS = {
  preserve: (world, _ledger, random) => {
    const value = random() < 0.75 ? oneOf(random, ['now', 'when-failed', 'when-failed', 'false']) : null;
    annotateMachineOrNode(world, random, PRESERVE_ANNOTATION, value);
  },
  preserveFailed: (world, _ledger, random) =>
    world.changePool({ spec: { autoPreserveFailedMachineMax: integerIn(random, 0, 2) } }),
  maintain: (world, _ledger, random) => {
    const value = random() < 0.6 ? 'true' : oneOf(random, ['false', null]);
    annotateMachineOrNode(world, random, MAINTENANCE_ANNOTATION, value);
  },
  deletionPolicy: (world, _ledger, random) => {
    const policies = world.isHonest ? POLICIES.slice(0, 2) : POLICIES;
    const value = random() < 0.75 ? oneOf(random, policies) : null;
    const annotations = { [DELETION_POLICY_ANNOTATION]: value };
    if (random() < 0.4) world.changePool({ metadata: { annotations } });
    else annotateMachine(world, random, annotations);
  },
  inPlace: (world, _ledger, random) => {
    const strategy = { ...drawInPlace(random), rollingUpdate: null };
    world.changePool({ spec: { strategy, template: { spec: { inPlaceUpdateTimeout: '5m' } } } });
  },
  selectNode: (world, _ledger, random) => {
    const candidates = world.nodes.filter(({ metadata }) => CANDIDATE_FOR_UPDATE_LABEL in (metadata.labels ?? {}));
    if (candidates.length === 0) return;
    const labels = { [SELECTED_FOR_UPDATE_LABEL]: random() < 0.8 ? 'true' : null };
    const { name } = oneOf(random, candidates).metadata;
    world.act('PATCH', `/api/v1/nodes/${name}`, { metadata: { labels } }, 'target');
  },
  recreate: (world) => world.changePool({ spec: { strategy: { type: 'Recreate', rollingUpdate: null } } }),
  oddSize: (world, _ledger, random) => world.changePool({ spec: { replicas: integerIn(random, MOST_REPLICAS, 25) } }),
  oddStrategy: (world, _ledger, random) => {
    const rollingUpdate = oneOf(random, ODD_LIMITS);
    world.changePool({ spec: { strategy: { type: 'RollingUpdate', rollingUpdate } } });
  },
  oddClass: (world, _ledger, random) => {
    const name = oneOf(random, ['nowhere', 'Not A Name', POOL, POOL]);
    world.changePool({ spec: { template: { spec: { class: { name } } } } });
  },
  garbage: (world, _ledger, random) => {
    const key = oneOf(random, Object.keys(GARBAGE));
    const annotations = { [key]: oneOf(random, GARBAGE[key] ?? []) };
    const [first, ...others] = oneOf(random, [[POOL], world.sets.map(nameOf), world.machines.map(nameOf), []]);
    if (first === undefined) {
      if (world.nodes.length > 0) annotate(world, 'nodes', oneOf(random, world.nodes).metadata.name, annotations);
    } else if (first === POOL) world.changePool({ metadata: { annotations } });
    else {
      const name = oneOf(random, [first, ...others]);
      const plural = world.sets.some(({ metadata }) => metadata.name === name) ? 'machinesets' : 'machines';
      annotate(world, plural, name, annotations);
    }
  },
  scaleSet: (world, ledger, random) => {
    if (world.sets.length === 0) return;
    const { metadata, spec } = oneOf(random, world.sets);
    const { replicas: before = 0 } = spec;
    const replicas = Math.max(0, before + integerIn(random, -2, 2));
    ledger.resizedBy(replicas - before);
    world.act('PATCH', world.pathOf('machinesets', metadata.name), { spec: { replicas } });
  },
  deleteSet: (world, ledger, random) => {
    if (world.sets.length === 0) return;
    const { name, uid } = oneOf(random, world.sets).metadata;
    ledger.askedForSet(uid);
    world.act('DELETE', world.pathOf('machinesets', name), {});
  },
  writePhase: (world, _ledger, random) => {
    const running = world.machines.filter(({ status }) => status?.currentStatus?.phase === 'Running');
    if (running.length === 0) return;
    const path = world.pathOf('machines', oneOf(random, running).metadata.name);
    const lastUpdateTime = toTimestamp(world.time.epochMs);
    const currentStatus = { phase: oneOf(random, ['Unknown', 'Failed']), lastUpdateTime };
    world.act('PATCH', `${path}/status`, { status: { currentStatus } });
  },
  protectNode: (world, _ledger, random) => {
    if (world.nodes.length === 0) return;
    const annotations = { [SCALE_DOWN_DISABLED_ANNOTATION]: random() < 0.75 ? 'true' : null };
    annotate(world, 'nodes', oneOf(random, world.nodes).metadata.name, annotations);
  },
  cordon: (world, ledger, random) => {
    if (world.nodes.length === 0) return;
    const { name } = oneOf(random, world.nodes).metadata;
    if (random() < 0.6) cordon(world, name, true);
    else if (mayUncordon(world, ledger, name)) cordon(world, name, false);
  },
  prepareDeletion: (world, _ledger, random) =>
    annotateMachine(world, random, { [PREPARE_DELETION_ANNOTATION]: random() < 0.7 ? 'true' : null }),
} satisfies ActTable;

/** Names of those acts. */
export const OTHER_ACT_NAMES = Object.keys(OTHER_ACTS) as (keyof typeof OTHER_ACTS)[];

function annotateMachine(world: MachinesWorld, random: Random, annotations: object): void {
  if (world.machines.length === 0) return;
  annotate(world, 'machines', oneOf(random, world.machines).metadata.name, annotations);
}

function annotateMachineOrNode(world: MachinesWorld, random: Random, key: string, value: string | null): void {
  if (random() < 0.5) return annotateMachine(world, random, { [key]: value });
  if (world.nodes.length > 0) annotate(world, 'nodes', oneOf(random, world.nodes).metadata.name, { [key]: value });
}

function cordon(world: MachinesWorld, name: string, unschedulable: boolean): void {
  world.act('PATCH', `/api/v1/nodes/${name}`, { spec: { unschedulable: unschedulable || null } }, 'target');
}

/** Users take back what they have done, and not while something else needs the Node to be empty. */
function mayUncordon(world: MachinesWorld, ledger: Pick<Ledger, 'isCordoned'>, name: string): boolean {
  const machine = world.machines.find(({ metadata }) => metadata.labels?.['node'] === name);
  const isNeeded =
    machine === undefined || machine.metadata.deletionTimestamp !== undefined || preparedSinceMs(machine) !== undefined;
  return ledger.isCordoned(name) && !isNeeded;
}

function nameOf({ metadata }: { readonly metadata: { readonly name: string } }): string {
  return metadata.name;
}

function annotate(
  world: MachinesWorld,
  plural: 'machinesets' | 'machines' | 'nodes',
  name: string,
  annotations: object,
): void {
  const body = { metadata: { annotations } };
  if (plural === 'nodes') world.act('PATCH', `/api/v1/nodes/${name}`, body, 'target');
  else world.act('PATCH', world.pathOf(plural, name), body);
}

/**
 * Users end what keeps machines from being replaced, or from being available, and what has no effect. `mayResize`: they have chosen the size, not
 * an autoscaler.
 */
export function takeBack(
  world: MachinesWorld,
  ledger: Pick<Ledger, 'isCordoned'>,
  { mayResize }: { readonly mayResize: boolean },
): void {
  const isMeant = (key: string, value: string): boolean => MEANT[key]?.includes(value) === true;
  const keys = Object.keys(GARBAGE);
  const theirs = ({ metadata: { annotations = {} } }: Pick<Machine, 'metadata'>): object | undefined => {
    const there = keys.filter((key) => annotations[key] !== undefined && !isMeant(key, annotations[key]));
    return there.length === 0 ? undefined : Object.fromEntries(there.map((key) => [key, null]));
  };
  for (const plural of ['sets', 'machines', 'nodes'] as const) {
    for (const object of world[plural]) {
      const annotations = theirs(object);
      if (annotations !== undefined)
        annotate(world, plural === 'sets' ? 'machinesets' : plural, object.metadata.name, annotations);
    }
  }
  for (const { metadata } of world.nodes) {
    const { name, annotations = {} } = metadata;
    if (mayUncordon(world, ledger, name)) cordon(world, name, false);
    const isProtected = annotations[SCALE_DOWN_DISABLED_ANNOTATION] !== undefined;
    if (isProtected && annotations[SCALE_DOWN_DISABLED_BY_US_ANNOTATION] === undefined)
      annotate(world, 'nodes', name, { [SCALE_DOWN_DISABLED_ANNOTATION]: null });
  }
  const { pool } = world;
  if (pool === undefined) return;
  const annotations = theirs(pool);
  if (annotations !== undefined) world.changePool({ metadata: { annotations } });
  const { autoPreserveFailedMachineMax = 0, replicas = 0, strategy } = pool.spec;
  if (autoPreserveFailedMachineMax > 0) world.changePool({ spec: { autoPreserveFailedMachineMax: 0 } });
  if (mayResize && replicas > MOST_REPLICAS) world.changePool({ spec: { replicas: MOST_REPLICAS } });
  if (strategy?.inPlaceUpdate?.orchestrationType === 'Manual')
    world.changePool({ spec: { strategy: { inPlaceUpdate: { orchestrationType: 'Auto' } } } });
  correctClass(world);
}

/** Also where a rollback that was waiting has brought another one back. */
function correctClass(world: MachinesWorld): void {
  const { name } = world.pool?.spec.template?.spec?.class ?? {};
  if (name !== undefined && name !== POOL)
    world.changePool({ spec: { template: { spec: { class: { name: POOL } } } } });
}

/**
 * Somebody corrects a class that does not exist, and does what the status of a deletion asks for, or of its preparation, when its drain takes too
 * long.
 */
export function freeStuck(world: MachinesWorld): void {
  correctClass(world);
  const isStuck = (sinceMs = Infinity): boolean => world.time.epochMs - sinceMs > STUCK_MS;
  const inherited = world.pool?.metadata.annotations?.[DELETION_POLICY_ANNOTATION];
  for (const machine of world.machines) {
    const { name, deletionTimestamp, annotations } = machine.metadata;
    const isGraceful = (annotations?.[DELETION_POLICY_ANNOTATION] ?? inherited) === 'graceful';
    if (isGraceful && isStuck(fromTimestamp(deletionTimestamp)))
      annotate(world, 'machines', name, { [DELETION_POLICY_ANNOTATION]: 'unsafe' });
    if (isPrepared(machine) && deletionTimestamp === undefined && isStuck(preparedSinceMs(machine)))
      annotate(world, 'machines', name, { [PREPARE_DELETION_ANNOTATION]: null });
  }
}
