import type { DemoApi, DemoDriver } from './command.ts';
import { machineNames, SPARE } from './ironcore-objects.ts';
import { DEMO_CLUSTER, FIRST } from './provider-objects.ts';

/** What the printed list needs to know. Paths as they are typed by the user. */
export interface DemoPlaces {
  readonly kubectl: string;
  readonly kubeconfig: string;
  readonly directory: string;
  readonly driver: DemoDriver;
  readonly api: DemoApi;
  readonly autoscaler: boolean;
  /** How many there are now. */
  readonly machines: number;
}

const PODS = `  k -n default scale deployment web --replicas=6
                                          pods become machines; fewer pods: idle machines leave, as they do
                                          when you give "workers" more than pods need
  k get events --field-selector involvedObject.kind=MachineDeployment
                                          what the autoscaler asked for, and what became of it`;

const MORE_PODS = `  k -n default scale deployment web --replicas=9
                                          after the roll: the class is broken; the autoscaler takes back what
                                          cannot be created, and tries again a while later`;

const killKubelet = (directory: string): string => `
  kill -9 $(grep -h '"pid"' ${directory}/machines/vms/*/vm.json | head -1 | tr -dc 0-9)
                                          a machine dies: Unknown after some 15 s, Failed 30 s later, replaced`;
const CLUSTER_API = `
  k get machines.cluster.x-k8s.io,demomachines
                                          the same machines, as Cluster API and its provider have them
  m describe cluster-api-machine $(k get mc -o name | head -1 | cut -d/ -f2)
                                          one of them, explained`;
const firstMachine = (directory: string): string => `
  k apply -f ${directory}/manifests/first-machine.yaml
                                          a Machine of Cluster API without a MachineDeployment becomes a Node
  k annotate machines.cluster.x-k8s.io ${FIRST} pre-drain.delete.hook.machine.cluster.x-k8s.io/me=
  k delete machines.cluster.x-k8s.io ${FIRST} --wait=false
                                          its hook holds it, as m describe cluster-api-machine ${FIRST} says
  k annotate machines.cluster.x-k8s.io ${FIRST} pre-drain.delete.hook.machine.cluster.x-k8s.io/me-
                                          drained, deleted, and its Node with it
  k patch cluster ${DEMO_CLUSTER} --type=merge -p '{"spec":{"paused":true}}'
                                          nothing is done about its Machines; on again with false`;
const FAIL_NODE = `
  k label $(k get nodes -o name | head -1) node-not-ready.stage.kwok.x-k8s.io=true
                                          a Node fails: Unknown at once, Failed 30 s later, replaced, and its
                                          pods run elsewhere
  k -n default get pods -o wide           which pods run where`;

/** In one column with the rest of the list. */
function scaleTo(replicas: number, what: string): string {
  return `${`  k scale mcd workers --replicas=${replicas}`.padEnd(42)}${what}`;
}

/** The short list that the demo prints when its machines are up. */
export function thingsToTry(places: DemoPlaces): string {
  const { kubectl, kubeconfig, api } = places;
  return `
Things to try in another terminal, in the same folder:

  alias k='${kubectl} --kubeconfig ${kubeconfig}'
  alias m='KUBECONFIG=${kubeconfig} npm run -s machinist --'

${api === 'ironcore' ? withIronCore(places) : withMachines(places)}

Ctrl-C here removes everything.
`;
}

function withMachines({ directory, driver, api, autoscaler, machines }: DemoPlaces): string {
  const killOne = { sim: '', local: killKubelet(directory), kwok: FAIL_NODE }[driver];
  return `  k get mcd,mcs,mc,nodes                  everything at a glance
  k describe mc --show-events             the story of each machine
  m describe machine $(k get mc -o name | head -1 | cut -d/ -f2)
                                          the same, explained: what it waits for, and what happens next${api === 'cluster-api' ? CLUSTER_API : ''}
${autoscaler ? PODS : scaleTo(machines + 2, `more machines; fewer with --replicas=${machines - 1}`)}
  k delete mc $(k get mc -o name | head -1 | cut -d/ -f2)
                                          drained, deleted, replaced${killOne}
  k patch mcd workers --type=merge -p '{"spec":{"template":{"spec":{"class":{"name":"workers-b"}}}}}'
                                          rolled to another class, one machine at a time; of many, a tenth
  m rollout status workers                follows it; also: history, undo, pause, resume, restart
  k apply -f ${directory}/manifests/broken-class.yaml
${autoscaler ? MORE_PODS : scaleTo(machines + 3, 'after the roll: the class is broken, new machines say why')}
  k apply -f ${directory}/manifests/class-b.yaml
                                          fixed: they come up, without a restart${api === 'cluster-api' ? firstMachine(directory) : ''}`;
}

function withIronCore({ directory }: DemoPlaces): string {
  const [first] = machineNames(1);
  const patch = `k patch machines.compute.ironcore.dev ${first}`;
  const more = JSON.stringify({ name: 'more', volumeRef: { name: SPARE } });
  return `  k get machines.compute.ironcore.dev     everything at a glance; also: machinepools, volumes, networkinterfaces
  m describe ironcore-machine ${first}    explained: its pool, what it waits for, what is attached
  ${patch} --type=json -p '[{"op":"add","path":"/spec/volumes/-","value":${more}}]'
                                          a volume is attached while the machine runs
  ${patch} --type=merge -p '{"spec":{"power":"Off"}}'
                                          switched off; on again with "On"
  kill -STOP $(cat ${directory}/runtime.pid)
                                          the pool is lost: some 15 s later it is Offline, and its Machines say so
  kill -CONT $(cat ${directory}/runtime.pid)
                                          it answers again, and its Machines are as they were
  kill -KILL $(cat ${directory}/runtime.pid)
                                          the runtime is started again without its machines: none is made anew,
                                          for they may still run; MachinesLost says so, and how they are given up
  k delete machines.compute.ironcore.dev ${first}
                                          gone with its machine; its Volume and NetworkInterface are free again`;
}
