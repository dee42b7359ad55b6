import { NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { explain } from '../../pkg/controllers/machine/explain/explain.ts';
import type { MachinesSnapshot } from './watch-machines.ts';

/** What a step of the tour works with. */
export interface TourContext {
  /** How many machines the fleet has between two steps. */
  readonly machines: number;
  /** Folder of the demo, as it is typed. */
  readonly directory: string;
  /** Types a command in the shell of the demo, and shows it with its output, which is returned. */
  readonly type: (command: string) => Promise<string>;
  /** Says one line about what is waited for. */
  readonly say: (line: string) => void;
  /** Resolves, with what there is then, when `isDone` says so. `what`: that did not happen, for the error. */
  readonly until: (what: string, isDone: (now: MachinesSnapshot) => boolean) => Promise<MachinesSnapshot>;
  /** Resolves when so many machines are up. */
  readonly untilUp: (machines: number) => Promise<MachinesSnapshot>;
  /** Process of the kubelet that is a machine. */
  readonly kubeletOf: (machine: string) => number;
  readonly etcd: Program;
  readonly apiserver: Program;
  /** Whether the manager does not change anything, because it cannot reach the API server. */
  readonly untilFrozen: (isFrozen: boolean) => Promise<void>;
  /** Address of the manager's probes and metrics. */
  readonly manager: string;
}

/** A program of the control plane. */
interface Program {
  readonly pid: () => number;
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** Resolves when the demo has started it again after it was killed. */
  readonly untilRestarted: (oldPid: number) => Promise<void>;
}

/** A step of the tour. It begins and ends with a healthy fleet of the same size and class, and waits for conditions only. */
export interface TourStep {
  readonly title: string;
  /** Two sentences: what happens, and why it matters. */
  readonly explanation: string;
  /** Resolves with one sentence: what was shown. */
  readonly run: (tour: TourContext) => Promise<string>;
  /** Commands whose output is shown at the end. */
  readonly shows: readonly string[];
}

const CLASS_B = `k patch mcd workers --type=merge -p '{"spec":{"template":{"spec":{"class":{"name":"workers-b"}}}}}'`;

const scale: TourStep = {
  title: 'Scale up and down',
  explanation:
    'A MachineDeployment keeps the requested number of machines, and each machine joins the cluster as a Node with a token of its own. This step requests two more, and then removes two: they are drained and deleted together with their Nodes.',
  async run({ machines, type, untilUp }) {
    await type(`k scale mcd workers --replicas=${machines + 2}`);
    await untilUp(machines + 2);
    await type('k get mcd');
    await type('k get mc');
    await type(`k scale mcd workers --replicas=${machines}`);
    await untilUp(machines);
    return `${machines} machines became ${machines + 2}, and ${machines} again.`;
  },
  shows: ['k get mc', 'k get nodes'],
};

const killMachine: TourStep = {
  title: 'Kill a machine',
  explanation:
    'The kubelet of a machine is killed, as if its VM had crashed; its Node becomes Unknown when it has been silent for about 16 seconds. The manager waits for the health timeout (30 seconds here), verifies with live reads that the machine is still unhealthy, and replaces it.',
  async run({ machines, type, say, until, untilUp, kubeletOf }) {
    const { name } = await first(until);
    await type(`kill -9 ${kubeletOf(name)}   # the kubelet of ${name}`);
    say('waiting for its Node to become Unknown…');
    await until('the machine did not become Unknown', ({ machines: all }) => phaseOf(all, name) === 'Unknown');
    await type(`m describe machine ${name}`);
    say('waiting for its replacement…');
    await until('the machine was not replaced', ({ machines: all }) => phaseOf(all, name) === undefined);
    await untilUp(machines);
    return `${name} was replaced.`;
  },
  shows: ['k get mc'],
};

const blockedDrain: TourStep = {
  title: 'A drain that is blocked',
  explanation:
    'A machine is deleted while a PodDisruptionBudget allows no eviction of its pod, so its drain waits, and says for what. When the budget is removed, the pod is evicted and the machine is replaced.',
  async run({ machines, directory, type, say, until, untilUp }) {
    const { name, node } = await first(until);
    await type(`sed 's/NODE/${node}/' ${directory}/manifests/guarded-pod.yaml | k apply -f -`);
    await type('k -n default wait --for=condition=Ready pod/guarded --timeout=60s');
    await type(`k -n default wait --for=jsonpath='{.status.currentHealthy}'=1 pdb/guarded --timeout=60s`);
    await type(`k delete mc ${name} --wait=false`);
    const isBlocked = ({ machines: all }: MachinesSnapshot): boolean => explained(all, name).includes('guarded');
    await until('the drain was not blocked', isBlocked);
    await type('m tree workers');
    await type('k -n default delete pdb guarded');
    say('waiting for the drain to complete…');
    await until('the machine was not deleted', ({ machines: all }) => phaseOf(all, name) === undefined);
    await untilUp(machines);
    await type('k -n default delete pod guarded --ignore-not-found --wait=false');
    return `The drain of ${name} waited for the PodDisruptionBudget.`;
  },
  shows: ['k get mc'],
};

const rollAndUndo: TourStep = {
  title: 'Roll out another class, and undo it',
  explanation:
    'A change of the template replaces all machines, one at a time here, and each old machine leaves only when its successor is ready. Every revision is kept, so that a rollout can be undone.',
  async run({ machines, type, until, untilUp }) {
    await type(CLASS_B);
    await type('m rollout status workers --timeout=10m');
    await until('the machines were not replaced', haveClass(machines, 'workers-b'));
    await type('m rollout history workers');
    await type('m rollout undo workers');
    await type('m rollout status workers --timeout=10m');
    await until('the machines were not replaced', haveClass(machines, 'workers-a'));
    await untilUp(machines);
    return `${machines} machines moved to class workers-b, and back.`;
  },
  shows: ['m rollout history workers', 'k get mc'],
};

const brokenClass: TourStep = {
  title: 'A broken class',
  explanation:
    'A class that the driver rejects is rolled out: the new machine reports why it cannot be created, and no old machine is removed. When the class is fixed, the rollout continues without a restart.',
  async run({ machines, directory, type, until, untilUp }) {
    await type(`k apply -f ${directory}/manifests/broken-class.yaml`);
    await type(CLASS_B);
    const isBroken = ({ machines: all }: MachinesSnapshot): boolean =>
      all.some(
        ({ status }) =>
          status?.currentStatus?.phase === 'CrashLoopBackOff' || status?.lastOperation?.state === 'Failed',
      );
    const { machines: all } = await until('no machine was rejected', isBroken);
    const old = all.filter(({ spec }) => spec.class?.name === 'workers-a');
    await type('m tree workers');
    await type(`k apply -f ${directory}/manifests/class-b.yaml`);
    await type('m rollout status workers --timeout=10m');
    await type('m rollout undo workers');
    await type('m rollout status workers --timeout=10m');
    await until('the machines were not replaced', haveClass(machines, 'workers-a'));
    await untilUp(machines);
    return `All ${old.length} old machines stayed while the class was broken.`;
  },
  shows: ['k get mc'],
};

const outage: TourStep = {
  title: 'An outage of the API server',
  explanation:
    'The API server is stopped, so that the manager cannot know which machines are healthy: it makes no changes until the server responds again. No machine is replaced because of the outage.',
  async run({ machines, type, say, apiserver, until, untilUp, untilFrozen, manager }) {
    const before = await names(until);
    say('stopping kube-apiserver…');
    await apiserver.stop();
    await untilFrozen(true);
    await type(`curl -s '${manager}/readyz?verbose'`);
    say('starting kube-apiserver…');
    await apiserver.start();
    await untilFrozen(false);
    await untilUp(machines);
    return unchanged(before, await names(until));
  },
  shows: ['k get mc'],
};

const killEtcd: TourStep = {
  title: 'Kill etcd',
  explanation:
    'etcd is killed, which takes the API server down with it, and started again with its data. The manager continues with what it finds, and replaces nothing.',
  async run({ machines, type, say, etcd, until, untilUp }) {
    const before = await names(until);
    const pid = etcd.pid();
    await type(`kill -9 ${pid}   # etcd`);
    say('waiting for etcd and the API server…');
    await etcd.untilRestarted(pid);
    await type(`k wait --for=condition=Available mcd/workers --timeout=120s`);
    await untilUp(machines);
    return unchanged(before, await names(until));
  },
  shows: ['k get mc'],
};

const maintenance: TourStep = {
  title: 'Maintenance',
  explanation:
    'A machine is taken out of service for a reboot or a repair: its Node is cordoned and drained, and the machine is kept although it runs no pods. Afterwards its Node takes pods again.',
  async run({ machines, type, until, untilUp }) {
    const { name, node } = await first(until);
    await type(`m maintenance start ${name} --wait --timeout=5m`);
    await type(`k get node ${node}`);
    await type(`m maintenance end ${name} --wait --timeout=5m`);
    await until('the Node was not uncordoned', ({ nodes }) =>
      nodes.some(({ metadata, spec }) => metadata.name === node && spec?.unschedulable !== true),
    );
    await untilUp(machines);
    return `${name} was out of service, and is the same machine as before.`;
  },
  shows: ['k get mc', 'k get nodes'],
};

/** The tour, in its order. */
export const TOUR: readonly TourStep[] = [
  scale,
  killMachine,
  blockedDrain,
  rollAndUndo,
  brokenClass,
  outage,
  killEtcd,
  maintenance,
];

type Until = TourContext['until'];

/** The machine that a step is about. */
async function first(until: Until): Promise<{ readonly name: string; readonly node: string }> {
  const { machines } = await until('there is no machine', ({ machines: all }) => all.length > 0);
  const [machine] = machines.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  if (machine === undefined) throw new Error('there is no machine');
  const { name, labels = {} } = machine.metadata;
  return { name, node: labels[NODE_LABEL] ?? name };
}

async function names(until: Until): Promise<readonly string[]> {
  const { machines } = await until('there is no machine', () => true);
  return machines.map(({ metadata }) => metadata.name).toSorted();
}

function unchanged(before: readonly string[], after: readonly string[]): string {
  const gone = before.filter((name) => !after.includes(name));
  if (gone.length > 0) return `${gone.join(', ')} had to be replaced.`;
  return `No machine was replaced: ${after.join(', ')}.`;
}

function phaseOf(machines: readonly Machine[], name: string): string | undefined {
  const machine = machines.find(({ metadata }) => metadata.name === name);
  return machine === undefined ? undefined : (machine.status?.currentStatus?.phase ?? '');
}

/** What it waits for; empty when it has gone. */
function explained(machines: readonly Machine[], name: string): string {
  const machine = machines.find(({ metadata }) => metadata.name === name);
  return machine === undefined ? '' : explain(machine, 0).message;
}

function haveClass(wanted: number, name: string): (now: MachinesSnapshot) => boolean {
  return ({ machines }) => machines.length === wanted && machines.every(({ spec }) => spec.class?.name === name);
}
