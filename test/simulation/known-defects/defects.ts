import { MUTATIONS } from '../../../hack/mutations/list.ts';
import type { Mutation } from '../../../hack/mutations/mutation.ts';
import type { FaultPlan } from '../world/faults.ts';
import type { Script } from '../world/script.ts';
import type { WorldName } from '../worlds/worlds.ts';

/** A defect that the program has had, or one of its kind, as a change of the present source. */
export interface KnownDefect {
  /** By which it is run. */
  readonly name: string;
  readonly change: Pick<Mutation, 'in' | 'from' | 'to' | 'why'>;
  /** The kind of world that shows it; `machines` unless it is given. */
  readonly world?: WorldName;
  /** Whether a life with that script can show it at all: others are not run. */
  readonly mayShow: (script: Script) => boolean;
  /** What must be found: whatever else it causes does not count. */
  readonly shows: RegExp;
}

const NAMED_NONE = /^healthy Machine .* nobody asked for it/;
const TOO_MANY = /^there are \d+ Machines where/;
const GIVEN_UP = /^Machine .* was given up/;
const TWO_VMS = /has \d+ VMs for more than|not as asked for within/;
const VM_LEFT = /has gone before its VM|belongs to no Machine|left: .* VMs/;
const STUCK = /not as asked for within|left: /;
const FORGOTTEN = /was only forgotten/;
const LED = /another process led|took Lease/;
const UNANSWERED = /had not answered for/;
const WITH_ITS_NODE = /^Machine .* was deleted with its Node/;
const VM_DELETED = /^VM .* was deleted although/;

/** Rates are worth a run from here on: the plan of a seed is known before. */
const OFTEN = 0.03;
const happens =
  (of: (plan: FaultPlan) => number) =>
  ({ phases }: Script): boolean =>
    phases.some(({ plan }) => of(plan) > OFTEN);
const acts = happens(({ act }) => act / 3);
const mishaps = happens(({ mishap }) => mishap / 2);
const answersLost = happens(({ rates }) => rates.answerLost);
/** Watches show changes seconds after they were made. */
const lags = happens(({ rates }) => rates.watchLagMs / 60_000);
/** The answer to a creation is lost, and watches do not show soon what became of it. */
const losesSight = ({ phases }: Script): boolean =>
  phases.some(({ plan: { act, rates } }) => act > 0.2 && rates.answerLost > OFTEN && rates.watchLagMs > 4_000);
const pauses = happens(({ pause }) => pause);
const outages = happens(({ outage }) => outage);
const targetOutages = happens(({ targetOutage }) => targetOutage);
/** A leader that has ended, or is cut off, is followed soon. */
const hasShortLeases = ({ world }: Script): boolean => !('leader-elect-lease-duration' in (world.flags ?? {}));
const setBacks = happens(({ setBack }) => setBack);
const deaths = happens(({ death }) => death);
const driverDoes =
  (effect: string, method?: string) =>
  ({ phases }: Script): boolean =>
    phases.some(({ plan }) =>
      plan.driver.some(
        (rule) =>
          rule.effect === effect &&
          (rule.probability ?? 1) > OFTEN &&
          (method === undefined || rule.method === method || rule.method === '*'),
      ),
    );
const all =
  (...conditions: readonly ((script: Script) => boolean)[]) =>
  (script: Script): boolean =>
    conditions.every((one) => one(script));
const isHonest = ({ world }: Script): boolean => world.isHonest === true;
const isLarge = ({ world }: Script): boolean => (world.replicas ?? 0) >= 3;
const ROLLS: readonly string[] = ['roll', 'rollAgain', 'rollBack', 'pause'];
/** Nobody changes sizes and strategies: bounds are close. */
const onlyRolls = ({ phases }: Script): boolean =>
  phases.some(({ plan }) => plan.act > OFTEN && plan.acts.every((act) => ROLLS.includes(act)));
/** How many machines may be missing is no whole number. */
const rounds = ({ world: { strategy, replicas = 0 } }: Script): boolean => {
  const { maxUnavailable } = strategy?.rollingUpdate ?? {};
  return typeof maxUnavailable === 'string' && (Number(maxUnavailable.slice(0, -1)) * replicas) % 100 !== 0;
};
const createsSlowly = ({ world }: Script): boolean => (world.latencyMs?.create ?? 0) > 40_000;
const hasVolumes = ({ world }: Script): boolean => (world.pods?.volumes ?? 0) > 0;
const hasPods = ({ world }: Script): boolean => world.pods !== undefined;
const makesTwice = ({ world }: Script): boolean => world.idempotentCreate === false;
const initializesVMs = ({ world }: Script): boolean => world.initializesVMs === true;
const initializesNodes = ({ world }: Script): boolean => world.initializesNodes === true;
const deletesNodes = ({ world }: Script): boolean => world.deletesNodes === true;
const hasOtherIDs = ({ world }: Script): boolean => world.otherNodeIDs === true;

/** Users do all of that in one phase, and often. */
const doesAll =
  (...names: readonly string[]) =>
  ({ phases }: Script): boolean =>
    phases.some(({ plan }) => plan.act > 0.2 && names.every((name) => plan.acts.includes(name)));

const hasNames = ({ world }: Script): boolean => world.flags?.['cell-namespaces'] !== undefined;
const hasOneTarget = ({ world }: Script): boolean => world.flags?.['cells'] !== undefined && world.hasTarget === true;
const hasSelector = ({ world }: Script): boolean => world.flags?.['cells'] !== undefined;

/** What cells with one target cluster must not do to one another. */
const HARM =
  /healthy Machine|nobody deleted its Machine|has gone before|belongs to no Machine|has label|has become that of|was marked|writes|still has|as asked for|does not manage|are left|nobody's/;

const elects = ({ world }: Script): boolean => world.flags?.['leader-elect'] !== 'false';
/** A restore forgets what has been made since the backup. */
const forgetsSome = ({ phases }: Script): boolean =>
  phases.some(({ plan }) => plan.setBack > 0.05 && (plan.act > 0.2 || plan.mishap > 0.2));

/** A restore forgets what users have made meanwhile. */
const forgets = ({ phases }: Script): boolean =>
  phases.some(({ plan }) => plan.setBack > 0.05 && plan.act > 0.2 && plan.acts.includes('make'));

const OUTAGES_IGNORED: KnownDefect['change'] = {
  in: 'LeaderGate.admit',
  from: "this.#requireOpenFence(intent); if (intent !== 'report')",
  to: "this.#requireOpenFence(intent); if (intent === 'destroy') intent = 'report'; if (intent !== 'report')",
  why: 'What destroys something is let through while a cluster does not answer.',
};

/** Defects that worlds find. */
export const KNOWN_DEFECTS: readonly KnownDefect[] = [
  {
    name: 'timers-left',
    change: {
      in: 'DeletionTimes.during',
      from: 'cancel();',
      to: 'cancel(); this.#clock.schedule(1e9, () => undefined);',
      why: 'A timer is left after each deletion: the memory of the process grows.',
    },
    mayShow: acts,
    shows: /still waits for \d+ timers/,
  },
  {
    name: 'health-timeout-ignored',
    change: {
      in: 'healthTimeoutMsOf',
      from: 'return parse(spec.healthTimeout) ?? settings.healthTimeoutMs',
      to: 'return (parse(spec.healthTimeout) ?? settings.healthTimeoutMs) / 10',
      why: 'Machines that are unhealthy for half a minute are replaced.',
    },
    mayShow: mishaps,
    shows: NAMED_NONE,
  },
  {
    name: 'drain-not-waited-for',
    change: {
      in: 'drain',
      from: "if (!isAt(ctx, 'drain')) return next;",
      to: "if (!isAt(ctx, 'drain')) return next; deps.cursor.advance(ctx, 'delete-vm', 'Drain successful.'); if (ctx !== undefined) return next;",
      why: 'VMs go with the pods on them.',
    },
    mayShow: all(hasPods, acts),
    shows: /pods were still on it/,
  },
  {
    name: 'pods-deleted',
    change: {
      in: 'Evictor.tryEvict',
      from: 'hasPatience ? await actions.evict(pod, signal) : await actions.kill(pod, signal)',
      to: 'await actions.kill(pod, signal)',
      why: 'Pods are deleted, whatever their budgets say.',
    },
    mayShow: all(hasPods, acts),
    shows: /past its budget/,
  },
  {
    name: 'expectations-ignored',
    change: {
      in: 'Expectations.check',
      from: 'if (names === undefined) return satisfied',
      to: 'if (names !== null) return satisfied',
      why: 'What was asked for and is not shown yet is asked for again: more Machines are made than wanted.',
    },
    mayShow: losesSight,
    shows: TOO_MANY,
  },
  {
    name: 'surge-doubled',
    change: {
      in: 'grownSize',
      from: 'sumOf([newSet, ...oldSets]',
      to: 'sumOf([newSet]',
      why: 'A rollout makes all new machines at once.',
    },
    mayShow: acts,
    shows: TOO_MANY,
  },
  {
    name: 'node-left',
    change: {
      in: 'deleteNode',
      from: 'else if (nodes !== undefined) await remove(deps, ctx, nodes)',
      to: "else if (nodes !== undefined && ctx.machine.status.lastOperation?.type !== 'Delete') await remove(deps, ctx, nodes)",
      why: 'A Node object stays after its machine is gone.',
    },
    mayShow: acts,
    shows: /has gone before its Node|Node .* belongs to no Machine/,
  },
  {
    name: 'old-not-bounded',
    change: {
      in: 'leastAvailable',
      from: 'Math.max(0, replicas - unavailable - preservedFailed)',
      to: '0 * replicas * unavailable * preservedFailed',
      why: 'A rollout takes more old machines than may be unavailable.',
    },
    mayShow: acts,
    shows: NAMED_NONE,
  },
  {
    name: 'set-back-unnoticed',
    change: {
      in: 'OutageDetector.#setBack',
      from: 'if (this.#outage?.isSetBack) return',
      to: 'if (cluster !== why) return',
      why: 'A control cluster that goes back in its history is taken for the same as before.',
    },
    mayShow: setBacks,
    shows: /was only forgotten|nobody|not as asked for/,
  },
  {
    name: 'outages-ignored',
    change: OUTAGES_IGNORED,
    mayShow: all(targetOutages, acts),
    shows: UNANSWERED,
  },
  {
    name: 'cell-outages-ignored',
    change: OUTAGES_IGNORED,
    world: 'cells',
    mayShow: all(targetOutages, acts),
    shows: UNANSWERED,
  },
  {
    name: 'changed-in-outages',
    change: {
      in: 'LeaderGate.admit',
      from: "this.#requireOpenFence(intent); if (intent !== 'report')",
      to: "this.#requireOpenFence(intent); if (intent === 'destroy')",
      why: 'What only changes something is let through during an outage.',
    },
    mayShow: all(targetOutages, acts),
    shows: UNANSWERED,
  },
  {
    name: 'marks-never-settled',
    change: {
      in: 'nodeMarks',
      from: "const stage = pass.waitsFor === undefined ? rolloutStage(observed) : 'none'",
      to: "const stage = 'choosing' as const",
      why: 'A Node keeps scale-down-disabled after a rollout.',
    },
    mayShow: acts,
    shows: /still has annotation/,
  },
  {
    name: 'evictions-end-early',
    change: {
      in: 'Evictor.#jittered',
      from: '1 + JITTER * this.#deps.random()',
      to: '1 - JITTER + 2 * JITTER * this.#deps.random()',
      why: 'A pod whose budget allows no eviction is deleted before the drain timeout.',
    },
    mayShow: all(hasPods, acts),
    shows: /past its budget/,
  },
  {
    name: 'suspended-forgets',
    change: {
      in: 'wakeOrphanVMs',
      from: 'if (old === undefined || old.metadata.uid === current?.metadata.uid) return',
      to: 'if (trust.trustedForMs([]) === 0 || old === undefined || old.metadata.uid === current?.metadata.uid) return',
      why: 'VMs of Machines that a long restore has forgotten are deleted when they are few.',
    },
    mayShow: all(elects, hasShortLeases, forgetsSome),
    shows: FORGOTTEN,
  },
  {
    name: 'outdated-drain-believed',
    change: {
      in: 'Drains.#isOutdated',
      from: 'return trustedMs > 0 &&',
      to: 'return trustedMs < 0 &&',
      why: 'A drain that ended before the cluster was set back counts, although the pods are back.',
    },
    mayShow: all(hasPods, setBacks, acts),
    shows: /pods were still on it/,
  },
  {
    name: 'volumes-not-waited-for',
    change: {
      in: 'isAttached',
      from: 'if (attachmentsOfNode.some(({ spec }) => spec.source.persistentVolumeName === name)) return true;',
      to: '',
      why: 'VMs go with the volumes of their pods.',
    },
    mayShow: all(hasVolumes, acts),
    shows: /volumes were still attached/,
  },
  {
    name: 'repeated-blindly',
    world: 'autoscaler',
    change: {
      in: 'settled',
      from: "if (fate !== 'unknown' || isRepeatable) return fate;",
      to: "if (fate !== 'open' || isRepeatable) return 'missed';",
      why: 'A change of a size whose answer was lost is made again.',
    },
    mayShow: all(acts, answersLost),
    shows: /nobody asked for it|was not done|and was done|chosen twice/,
  },
  {
    name: 'minimum-ignored',
    world: 'autoscaler',
    change: {
      in: 'withLess',
      from: 'machines.length > 0 && left < group.min',
      to: 'machines.length > 0 && left < group.min - 2',
      why: 'A group shrinks below its minimum when nodes are named.',
    },
    mayShow: acts,
    shows: /which is not from/,
  },
  {
    name: 'others-go',
    world: 'autoscaler',
    change: {
      in: 'GroupWrites.#send',
      from: '...(entries.length === 0 ? {} : { metadata: { annotations } })',
      to: '...(entries.length < Infinity ? {} : { metadata: { annotations } })',
      why: 'The size falls, and nobody learns which Machines were named.',
    },
    mayShow: acts,
    shows: /although its deletion was accepted|no autoscaler has named/,
  },
  {
    name: 'maximum-ignored',
    world: 'autoscaler',
    change: {
      in: 'decideIncrease',
      from: 'if (replicas > group.max)',
      to: 'if (replicas > group.max + 2)',
      why: 'A group grows above its maximum.',
    },
    mayShow: acts,
    shows: /which is not from/,
  },
  {
    name: 'hooks-ignored',
    world: 'cluster-api',
    change: {
      in: 'hooks',
      from: 'if (held.length === 0) return next;',
      to: 'if (held.length >= 0) return next;',
      why: 'Hooks of a Machine of Cluster API do not hold its deletion.',
    },
    mayShow: doesAll('hook', 'deleteMachine'),
    shows: /holds it/,
  },
  {
    name: 'pause-ignored',
    world: 'cluster-api',
    change: {
      in: 'ClusterAPIMachineController.reconcile',
      from: "if (pauses !== '')",
      to: "if (pauses === 'never')",
      why: 'A Machine of Cluster API is deleted although it, or its Cluster, is paused.',
    },
    mayShow: doesAll('pause', 'deleteMachine'),
    shows: /holds it/,
  },
  {
    name: 'machine-outlives-machine',
    world: 'ironcore',
    change: {
      in: 'decideDeletion',
      from: 'if (existing.length > 0) {',
      to: 'if (existing.some(isLeft)) {',
      why: 'A Machine of IronCore goes as soon as its machine was told to go.',
    },
    mayShow: acts,
    shows: /has gone before its machine|was given back although/,
  },
  {
    name: 'missing-believed',
    world: 'ironcore',
    change: {
      in: 'MissingMachines.#isBelieved',
      from: "if (note === 'none') return wasGoing",
      to: "if (note === 'none') return note === 'none' || wasGoing",
      why: 'Machines that a runtime without its state does not show are made again.',
    },
    mayShow: mishaps,
    shows: /is there for the same Machine|has gone before its machine/,
  },
  {
    name: 'one-too-many-placed',
    world: 'ironcore',
    change: {
      in: 'freePlaces',
      from: 'const free = capacity - taken.in',
      to: 'const free = capacity + 1 - taken.in',
      why: 'A pool gets one Machine more than it has room for.',
    },
    mayShow: doesAll('make', 'room'),
    shows: /was placed in/,
  },
  {
    name: 'toleration-ignored',
    world: 'ironcore',
    change: {
      in: 'drivingOut',
      from: '!tolerated([taint], tolerations)',
      to: '!tolerated([taint], tolerations?.slice(1))',
      why: 'Machines are evicted although they tolerate the taint.',
    },
    mayShow: doesAll('taint', 'make'),
    shows: /although nobody asked for it/,
  },
  {
    name: 'forgotten-machines-deleted',
    world: 'ironcore',
    change: {
      in: 'Departures.has',
      from: 'return this.#seen.get(uid) !== undefined',
      to: "return this.#seen.get(uid) !== undefined || uid !== ''",
      why: 'Machines at runtimes whose Machine a restore has forgotten are deleted.',
    },
    mayShow: forgets,
    shows: /was only forgotten/,
  },
  {
    name: 'late-cache-detaches',
    world: 'ironcore',
    change: {
      in: 'isCurrentVersion',
      from: 'live?.metadata.uid === observed.metadata.uid &&',
      to: "observed.metadata.uid !== '' ||",
      why: 'What a late cache does not show is taken from a machine.',
    },
    mayShow: all(lags, doesAll('attach', 'detach')),
    shows: /although its Machine (names it|is to be)/,
  },
  {
    name: 'maintained-without-cluster',
    world: 'mirantis',
    change: {
      in: 'ClusterMachineController.#admitted',
      from: 'if (!value.maintenance ||',
      to: 'if (value !== undefined ||',
      why: 'Machines are taken into maintenance although their Cluster is not.',
    },
    mayShow: doesAll('maintain'),
    shows: /its Cluster was not/,
  },
  {
    name: 'front-end-removed-first',
    world: 'mirantis',
    change: {
      in: 'ClusterMachineController.#make',
      from: '!this.#finalizer.holds',
      to: 'this.#finalizer.holds',
      why: 'A Machine of the front end goes before the one that was made for it.',
    },
    mayShow: acts,
    shows: /has gone before the one/,
  },
  {
    name: 'taken-back-ignored',
    world: 'mirantis',
    change: {
      in: 'annotationChange',
      from: 'picked(ours.metadata.annotations)',
      to: 'picked({})',
      why: 'A maintenance or a deletion that is taken back goes on.',
    },
    mayShow: acts,
    shows: /nobody asked for it|not as asked for/,
  },
  {
    name: 'classes-left',
    world: 'mirantis',
    change: {
      in: 'GeneratedClasses.removeUnused',
      from: 'for (const',
      to: 'if (namespace !== undefined) return; for (const',
      why: 'Classes that no Machine uses any more are left.',
    },
    mayShow: acts,
    shows: /is used by nothing|machineclasses/,
  },
  {
    name: 'drain-policy-ignored',
    world: 'mirantis',
    change: {
      in: 'annotationsFor',
      from: '[DELETION_POLICY_ANNOTATION]: deletionPolicy,',
      to: "[DELETION_POLICY_ANNOTATION]: deletionPolicy === 'graceful' ? 'unsafe' : deletionPolicy,",
      why: 'Machines whose pods are to leave first go without that.',
    },
    mayShow: all(hasPods, acts),
    shows: /pods were still on it/,
  },
  {
    name: 'drain-left-out',
    world: 'cluster-api',
    change: {
      in: 'deletionSteps',
      from: 'ofNode(drainStep(deps)),',
      to: '',
      why: 'Pods are still on a machine when its infrastructure is deleted.',
    },
    mayShow: all(hasPods, acts),
    shows: /pods were still on it/,
  },
  {
    name: 'selector-ignored',
    world: 'ironcore',
    change: {
      in: 'freePlaces',
      from: 'metadata.labels?.[key] === value',
      to: "metadata.labels?.[key] !== ''",
      why: 'A Machine is placed in a pool that its selector excludes.',
    },
    mayShow: doesAll('make'),
    shows: /which does not take it/,
  },
  {
    name: 'node-labels-stay',
    world: 'mirantis',
    change: {
      in: 'nodeChange',
      from: 'changesOf(template.labels, applied?.labels ?? {},',
      to: 'changesOf(template.labels, {},',
      why: 'A label that was removed from a node template stays on the Node.',
    },
    mayShow: doesAll('label'),
    shows: /wants label/,
  },
  {
    name: 'new-node-labels-only',
    world: 'mirantis',
    change: {
      in: 'nodeChange',
      from: 'changesOf(template.labels, applied?.labels ?? {}, current.labels ?? {})',
      to: 'changesOf({ ...template.labels, ...current.labels }, applied?.labels ?? {}, current.labels ?? {})',
      why: 'A label of a node template that is changed does not reach a Node that has it.',
    },
    mayShow: doesAll('labelPool'),
    shows: /wants label/,
  },
  {
    name: 'pool-labels-ignored',
    world: 'mirantis',
    change: {
      in: 'deploymentChange',
      from: '...(!isEmptyChange(labels) && { nodeTemplate: { metadata: { labels } } }),',
      to: '',
      why: 'Labels that a pool is given later do not reach its Machines.',
    },
    mayShow: doesAll('labelPool'),
    shows: /wants label/,
  },
  {
    name: 'pool-image-ignored',
    world: 'mirantis',
    change: {
      in: 'deploymentChange',
      from: 'spec.template.spec?.class?.name === className',
      to: "spec.template.spec?.class?.name !== ''",
      why: 'Another image of a pool does not reach its Machines.',
    },
    mayShow: doesAll('rollPool'),
    shows: /wants its image/,
  },
  row(
    'scaled-pool-set-back',
    'A pool that is scaled is set back to what an autoscaler chose.',
    doesAll('scalePool'),
    /^the pool was given/,
    'mirantis',
  ),
  row(
    'broken-post-made-again',
    'A connection that broke counts as "surely not created", and the Machine is made twice.',
    losesSight,
    TOO_MANY,
  ),
  row(
    'lost-post-made-again',
    'After some minutes a POST that was not answered counts as never sent.',
    all(acts, answersLost),
    TOO_MANY,
  ),
  row('closed-gate-forgotten', 'What met a closed gate is not tried again.', outages, STUCK),
  row('fence-stays-open', 'A process that could not renew its Lease goes on writing.', pauses, LED),
  row('lease-taken-unnoticed', 'A process goes on although another one has taken its Lease.', pauses, LED),
  row(
    'one-more-unavailable',
    'One machine more than allowed is unavailable in a rollout.',
    all(onlyRolls, rounds),
    NAMED_NONE,
  ),
  row(
    'replaced-together',
    'Two machines are failed at once where one may be replaced.',
    all(isLarge, mishaps),
    GIVEN_UP,
  ),
  row(
    'zone-replaced',
    'The machines of a zone that is cut off are replaced one after the other.',
    all(isLarge, mishaps),
    GIVEN_UP,
  ),
  row(
    'forgotten-deleted',
    'VMs whose Machines a restore has forgotten are deleted when they are few.',
    setBacks,
    FORGOTTEN,
  ),
  row('set-back-hidden', 'After a restore of etcd the cache hides what is there.', setBacks, STUCK),
  row(
    'delete-error-is-gone',
    'Any error of DeleteMachine means that the VM is gone.',
    all(isHonest, acts, driverDoes('fail', 'DeleteMachine')),
    VM_LEFT,
  ),
  row(
    'running-creation-leaks',
    'A VM that is just being created leaks with its deleted Machine.',
    all(isHonest, acts),
    VM_LEFT,
  ),
  row(
    'unanswered-creation-leaks',
    'The VM of a creation without answer leaks.',
    all(isHonest, acts, driverDoes('delayed')),
    VM_LEFT,
  ),
  row(
    'creation-not-noted',
    'After a crash nobody knows that a CreateMachine was sent, and a second one makes a second VM.',
    all(makesTwice, deaths, acts, hasShortLeases, createsSlowly),
    TWO_VMS,
  ),
  row(
    'status-error-is-no-vm',
    'Any error of GetMachineStatus means that there is no VM.',
    all(makesTwice, driverDoes('fail', 'GetMachineStatus'), acts),
    TWO_VMS,
  ),
  row(
    'one-look-fails',
    'A machine is failed after one look.',
    all(driverDoes('stale', 'ListMachines'), driverDoes('stale', 'GetMachineStatus')),
    NAMED_NONE,
  ),
  row(
    'made-during-look-deleted',
    'A VM that was made during the look is deleted, because Machines were read before it.',
    acts,
    VM_DELETED,
  ),
  row(
    'other-ids-no-node',
    'Healthy machines have no Node where cloud controllers write provider ids in another form than drivers.',
    hasOtherIDs,
    /./,
  ),
  row(
    'other-ids-deleted',
    'A driver that shows other ids all at once loses all its VMs.',
    driverDoes('other-id'),
    VM_DELETED,
  ),
  {
    name: 'vm-of-two-machines',
    change: {
      in: 'IdentityClaims.takenBy',
      from: "if (providerID === '')",
      to: "if (providerID !== '')",
      why: 'Two Machines record the provider id of one VM.',
    },
    mayShow: all(acts, driverDoes('other', 'CreateMachine')),
    shows: GIVEN_UP,
  },
  row('foreign-node-name', 'A machine takes the Node name of another one.', all(acts, driverDoes('mixed-up')), /./),
  row(
    'foreign-vm-answered',
    "A second VM is made of a machine whose first creation was answered with another machine's VM.",
    all(acts, driverDoes('other', 'CreateMachine')),
    TWO_VMS,
  ),
  row(
    'unseen-node-spares-nothing',
    'A Failed machine is deleted although its Node could not be looked at.',
    mishaps,
    NAMED_NONE,
  ),
  row(
    'waits-for-replacement',
    'A machine waits forever after another replacement, or after its zone has recovered.',
    all(isLarge, mishaps),
    STUCK,
  ),
  row('late-node-stays', 'The Node of a machine whose VM went after it stays.', acts, /Node .* belongs to no Machine/),
  row(
    'creation-repeated',
    'A creation without an answer is repeated at once: two machines.',
    acts,
    /is there for the same Machine/,
    'ironcore',
  ),
  row(
    'claim-freed-while-attached',
    'A volume is given to another Machine while it is still attached.',
    doesAll('attach', 'detach'),
    /was given back although|is used by machine/,
    'ironcore',
  ),
  {
    name: 'lost-state-ends-deletions',
    world: 'ironcore',
    change: {
      in: 'MissingMachines.#isBelieved',
      from: 'const { sightings } = this.#deps;',
      to: 'const { sightings } = this.#deps; if (isBeingDeleted(machine)) return true;',
      why: 'A runtime that lost its state has every deletion ended.',
    },
    mayShow: all(acts, mishaps),
    shows: /has gone before its machine|was given back although/,
  },
  row(
    'gone-between-lists',
    'A machine that has come and gone between two lists is never missed.',
    mishaps,
    STUCK,
    'ironcore',
  ),
  row(
    'place-given-twice',
    'A machine whose binding has no answer has its place given to another.',
    all(losesSight, doesAll('make', 'room')),
    /was placed in/,
    'ironcore',
  ),
  {
    name: 'lost-label-is-deletion',
    change: {
      in: 'getStored',
      from: 'if (labelSelector === undefined || stored === undefined) return stored?.metadata;',
      to: 'if (labelSelector !== "") return stored?.metadata;',
      why: 'A namespace that lost its label is taken for one whose deletion was undone.',
    },
    world: 'cells',
    mayShow: all(hasSelector, doesAll('release')),
    shows: /has an outage of control|not as asked for within/,
  },
  {
    name: 'released-continues',
    change: {
      in: 'Cells.#reconcileCell',
      from: "if (this.#isRefused(name)) return requeue(RETRY_MS, 'valid settings'); if (running !== undefined)",
      to: "if (this.#isRefused(name)) return requeue(RETRY_MS, 'valid settings'); if (running === undefined)",
      why: 'A namespace that lost its label is managed on.',
    },
    world: 'cells',
    mayShow: all(hasSelector, doesAll('release')),
    shows: /is not selected, and|managed by/,
  },
  {
    name: 'target-taken-twice',
    change: {
      in: 'ClaimLeases.take',
      from: 'holder !== namespace && (await isNeeded(lease))',
      to: 'holder === ""',
      why: 'Two namespaces manage the same target cluster.',
    },
    world: 'cells',
    mayShow: doesAll('confuse'),
    shows: /the target cluster of|nobody deleted its Machine|belongs to no Machine/,
  },
  {
    name: 'target-changed',
    change: {
      in: 'TargetClaims.claim',
      from: 'other !== undefined && hasMachines(namespace)',
      to: 'other !== undefined && namespace === ""',
      why: 'A kubeconfig that names the target cluster of another namespace by mistake has the Machines replaced.',
    },
    world: 'cells',
    mayShow: doesAll('confuse'),
    shows: /healthy Machine .* nobody asked for it/,
  },
  {
    name: 'foreign-nodes-unknown',
    change: {
      in: 'UnmanagedNodesController.reconcile',
      from: 'const owners = all.length;',
      to: 'const owners = all.filter((one) => one.metadata.namespace === this.#deps.namespace).length;',
      why: 'Where cells share a target cluster, each takes Nodes of the others for those of nobody.',
    },
    world: 'cells',
    mayShow: hasOneTarget,
    shows: /was marked as one without Machine/,
  },
  {
    name: 'everybody-judges',
    change: {
      in: 'CommonTarget.isJudge',
      from: 'judgeOf(nodeName, this.#cells()) === namespace',
      to: 'judgeOf(nodeName, this.#cells()) !== undefined',
      why: 'Where cells share a target cluster, all of them act on a Node that no Machine has.',
    },
    world: 'cells',
    mayShow: all(hasOneTarget, doesAll('confuse')),
    shows: HARM,
  },
  {
    name: 'names-not-awaited',
    change: {
      in: 'awaitName',
      from: "if (verdict !== 'free') {",
      to: "if (verdict !== 'free' && deps.namesakes === undefined) {",
      why: 'Two Machines of one name in two namespaces become one Node.',
    },
    world: 'cells',
    mayShow: all(hasOneTarget, doesAll('confuse')),
    shows: HARM,
  },
  {
    name: 'namesake-has-node',
    change: {
      in: 'belongsTo',
      from: 'if (says === machine.metadata.name) return !isOfNamesake(node, machine, machines);',
      to: 'if (says === machine.metadata.name) return true;',
      why: 'A Machine takes the Node of its namesake in another namespace for its own.',
    },
    world: 'cells',
    mayShow: all(hasOneTarget, doesAll('confuse')),
    shows: HARM,
  },
  {
    name: 'node-of-namesake-removed',
    change: {
      in: 'nodesRemovedWith',
      from: '!mayBeOfNamesake(node, machine, machines) &&',
      to: '',
      why: 'The Node of a namesake in another namespace is removed with a Machine.',
    },
    world: 'cells',
    mayShow: all(hasOneTarget, doesAll('confuse')),
    shows: HARM,
  },
  {
    name: 'waiting-asks-driver',
    change: {
      in: 'deleteVM',
      from: 'if (deps.namesakes !== undefined && wasNeverRequested(machine)) {',
      to: 'if (deps.namesakes === undefined && !wasNeverRequested(machine)) {',
      why: 'A driver is asked to delete the VM of a Machine that has waited for its name.',
    },
    world: 'cells',
    mayShow: all(hasOneTarget, doesAll('confuse')),
    shows: HARM,
  },
  {
    name: 'namespace-stays',
    change: {
      in: 'wakeRoleBindings',
      from: 'if (old !== undefined && hasFinalizer(old, SECRET_FINALIZER) && !isHeld) wakeAll(old, undefined);',
      to: 'if (old?.metadata.deletionTimestamp !== undefined && isHeld !== undefined) wakeAll(old, undefined);',
      why: 'A Secret that its class let go of before it is deleted does not wake the RoleBinding that waits for it.',
    },
    world: 'cells',
    mayShow: hasNames,
    shows: /is still being deleted/,
  },
  {
    name: 'handed-over-and-kept',
    change: {
      in: 'Shards.#release',
      from: 'wasHeld ? this.#options.leave(shard, graceMs) : Promise.resolve()',
      to: 'Promise.resolve(wasHeld ? undefined : undefined)',
      why: 'A replica that hands a shard over goes on managing its namespaces.',
    },
    world: 'cells',
    mayShow: doesAll('scaleManagers'),
    shows: /another process led|managed by 2/,
  },
  {
    name: 'initialization-forgotten',
    change: {
      in: 'failureOfCreation',
      from: "isUninitialized(machine) && providerIDOf(machine) !== '' ? { ...told, errorCode: 'VMBeingInitialized' } : told",
      to: 'told',
      why: 'A machine whose VM is not initialized runs once something else has failed, too.',
    },
    mayShow: initializesVMs,
    shows: /its VM .* is not initialized/,
  },
  row(
    'joining-given-up-together',
    'All machines that join are given up together when nothing sets up their Nodes.',
    initializesNodes,
    /whose Node was ready, too/,
  ),
  {
    name: 'uninitialized-node-runs',
    change: {
      in: 'runsOnceHealthy',
      from: '!isUninitialized(machine) && !isBeingSetUp(node)',
      to: '!isUninitialized(machine)',
      why: 'A machine runs on whose Node no pods are scheduled yet.',
    },
    mayShow: initializesNodes,
    shows: /its Node .* is not initialized/,
  },
  {
    name: 'deleted-nodes-believed',
    change: {
      in: 'nodeDeleted',
      from: 'kept !== undefined',
      to: "kept?.reason === ''",
      why: 'A cloud controller manager that does not find the VMs of a zone costs all its machines at once.',
    },
    mayShow: deletesNodes,
    shows: WITH_ITS_NODE,
  },
  row(
    'maintenance-kills-pods',
    'Maintenance kills pods against their budgets.',
    all(doesAll('maintain'), hasPods),
    /past its budget/,
  ),
  row(
    'maintained-stays-cordoned',
    'The Node stays cordoned after the maintenance.',
    doesAll('maintain'),
    /still has its cordon/,
  ),
  {
    name: 'preserved-replaced',
    change: {
      in: 'isKeptWhenFailed',
      from: 'untilMs > nowMs',
      to: 'untilMs < nowMs',
      why: 'A failed machine that is preserved is replaced.',
    },
    mayShow: all(doesAll('preserve'), mishaps),
    shows: /although it is preserved/,
  },
  {
    name: 'graceful-forced',
    change: {
      in: 'planOf',
      from: "policyInForce(machine) === 'graceful' ? 'request' : 'usual'",
      to: "'usual'",
      why: 'Pods are deleted although the policy is graceful.',
    },
    mayShow: all(doesAll('deletionPolicy'), hasPods),
    shows: /past its budget/,
  },
];

/** The row of the list of mutations that says so. */
function row(
  name: string,
  why: string,
  mayShow: KnownDefect['mayShow'],
  shows: RegExp,
  world?: WorldName,
): KnownDefect {
  const found = MUTATIONS.filter((one) => one.why === why);
  const [change] = found;
  if (change === undefined || found.length > 1)
    throw new Error(`${found.length} rows of hack/mutations/list say: ${why}`);
  return { name, change, mayShow, shows, ...(world && { world }) };
}
