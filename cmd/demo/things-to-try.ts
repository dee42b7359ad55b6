import type { DemoApi, DemoDriver } from './command.ts';
import { machineNames, SPARE } from './ironcore-objects.ts';
import { DEMO_CLUSTER, FIRST } from './provider-objects.ts';

/** What the printed list needs to know. Paths as they are typed by the user. */
export interface DemoPlaces {
  readonly directory: string;
  readonly driver: DemoDriver;
  readonly api: DemoApi;
  readonly autoscaler: boolean;
  /** How many there are now. */
  readonly machines: number;
  /** Address of the manager's probes and metrics. */
  readonly manager: string;
}

const PODS = `  k -n default scale deployment web --replicas=6
                                          machines are added for pods; with fewer pods, idle machines are removed,
                                          also when you scale "workers" beyond what the pods need
  k get events --field-selector involvedObject.kind=MachineDeployment
                                          what the autoscaler requested, and the results`;

const MORE_PODS = `  k -n default scale deployment web --replicas=9
                                          after the rollout: the class is broken; the autoscaler cancels what
                                          cannot be created, and retries later`;

const killKubelet = (directory: string): string => `
  kill -9 $(grep -h '"pid"' ${directory}/machines/vms/*/vm.json | head -1 | tr -dc 0-9)
                                          a machine fails: Unknown after about 15 s, Failed 30 s later, replaced`;
const CLUSTER_API = `
  k get machines.cluster.x-k8s.io,demomachines
                                          the same machines as objects of Cluster API and its provider
  m describe cluster-api-machine $(k get mc -o name | head -1 | cut -d/ -f2)
                                          one of them, explained`;
const firstMachine = (directory: string): string => `
  k apply -f ${directory}/manifests/first-machine.yaml
                                          a Machine of Cluster API without a MachineDeployment becomes a Node
  k annotate machines.cluster.x-k8s.io ${FIRST} pre-drain.delete.hook.machine.cluster.x-k8s.io/me=
  k delete machines.cluster.x-k8s.io ${FIRST} --wait=false
                                          held by its hook, as m describe cluster-api-machine ${FIRST} shows
  k annotate machines.cluster.x-k8s.io ${FIRST} pre-drain.delete.hook.machine.cluster.x-k8s.io/me-
                                          drained and deleted, with its Node
  k patch cluster ${DEMO_CLUSTER} --type=merge -p '{"spec":{"paused":true}}'
                                          its Machines are not reconciled; false resumes`;
const blockedDrain = (directory: string): string => `
  sed "s/NODE/$(k get mc -o name | head -1 | cut -d/ -f2)/" ${directory}/manifests/guarded-pod.yaml | k apply -f -
                                          a pod that a PodDisruptionBudget keeps, on the first machine: delete
                                          that machine, and see m tree (pods name their Node: there is no scheduler)`;
const FAIL_NODE = `
  k label $(k get nodes -o name | head -1) node-not-ready.stage.kwok.x-k8s.io=true
                                          a Node fails: Unknown immediately, Failed 30 s later, replaced; its
                                          pods move to other Nodes
  k -n default get pods -o wide           which pods run where`;

/** In one column with the rest of the list. */
function scaleTo(replicas: number, what: string): string {
  return `${`  k scale mcd workers --replicas=${replicas}`.padEnd(42)}${what}`;
}

/** The short list that the demo prints when its machines are up. */
export function thingsToTry(places: DemoPlaces): string {
  const { directory, api, manager } = places;
  // Of IronCore's machines it shows nothing.
  const page = api === 'ironcore' ? '' : `Status page, for a browser: ${manager}/ui/\n`;
  return `
Things to try in another terminal, in the same folder:

${`  source ${directory}/env`.padEnd(42)}k is kubectl of the demo, and m is machinist

${api === 'ironcore' ? withIronCore(places) : withMachines(places)}

${page}Ctrl-C here removes everything.
`;
}

function withMachines({ directory, driver, api, autoscaler, machines }: DemoPlaces): string {
  const killOne = { sim: '', local: killKubelet(directory), kwok: FAIL_NODE }[driver];
  return `  k get mcd,mcs,mc,nodes                  everything at a glance
  k describe mc --show-events             each machine with its Events
  m describe machine $(k get mc -o name | head -1 | cut -d/ -f2)
                                          the same, explained: what it is waiting for, and what happens next${api === 'cluster-api' ? CLUSTER_API : ''}
${autoscaler ? PODS : scaleTo(machines + 2, `more machines; fewer with --replicas=${machines - 1}`)}
  k delete mc $(k get mc -o name | head -1 | cut -d/ -f2)
                                          drained, deleted, replaced${killOne}${driver === 'local' && api !== 'cluster-api' ? blockedDrain(directory) : ''}
  k patch mcd workers --type=merge -p '{"spec":{"template":{"spec":{"class":{"name":"workers-b"}}}}}'
                                          rolls out another class, one machine at a time (10 % of many)
  m rollout status workers                watches it; also: history, undo, pause, resume, restart
  k apply -f ${directory}/manifests/broken-class.yaml
${autoscaler ? MORE_PODS : scaleTo(machines + 3, 'after the rollout: the class is broken, and new machines report why')}
  k apply -f ${directory}/manifests/class-b.yaml
                                          fixed: they start, without a restart${api === 'cluster-api' ? firstMachine(directory) : ''}`;
}

function withIronCore({ directory }: DemoPlaces): string {
  const [first] = machineNames(1);
  const patch = `k patch machines.compute.ironcore.dev ${first}`;
  const more = JSON.stringify({ name: 'more', volumeRef: { name: SPARE } });
  return `  k get machines.compute.ironcore.dev     everything at a glance; also: machinepools, volumes, networkinterfaces
  m describe ironcore-machine ${first}    explained: its pool, what it is waiting for, what is attached
  ${patch} --type=json -p '[{"op":"add","path":"/spec/volumes/-","value":${more}}]'
                                          attaches a volume while the machine runs
  ${patch} --type=merge -p '{"spec":{"power":"Off"}}'
                                          powers it off; "On" powers it on again
  kill -STOP $(cat ${directory}/runtime.pid)
                                          the pool is lost: Offline about 15 s later, as its Machines report
  kill -CONT $(cat ${directory}/runtime.pid)
                                          it responds again, and its Machines are unchanged
  kill -KILL $(cat ${directory}/runtime.pid)
                                          the runtime restarts without its machines: none is created again,
                                          because they may still run; MachinesLost reports it, and how to give them up
  k delete machines.compute.ironcore.dev ${first}
                                          deleted with its machine; its Volume and NetworkInterface are released`;
}
