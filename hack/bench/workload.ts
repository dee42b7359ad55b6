import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../control-plane/api.ts';

const BASE = '/apis/machine.sapcloud.io/v1alpha1/namespaces/machinist';

/** Two classes to roll between. */
const CLASSES = `
apiVersion: v1
kind: Secret
metadata: { name: bench, namespace: machinist }
stringData: { userData: "token <<BOOTSTRAP_TOKEN>>" }
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: { name: first, namespace: machinist }
provider: sim
providerSpec: {}
secretRef: { name: bench, namespace: machinist }
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: { name: second, namespace: machinist }
provider: sim
providerSpec: {}
secretRef: { name: bench, namespace: machinist }
`;

/** A MachineDeployment that asks for no machine yet, rolls at 10 %/10 %, and replaces whatever fails at once. */
const deployment = (name: string): string => `
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata:
  name: ${name}
  namespace: machinist
  annotations: { machine.sapcloud.io/max-replacements: 100% }
spec:
  replicas: 0
  selector: { matchLabels: { app: ${name} } }
  strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 10%, maxUnavailable: 10% } }
  template:
    metadata: { labels: { app: ${name} } }
    spec: { class: { kind: MachineClass, name: first } }
`;

/** The MachineDeployment that most is done with. */
export const MAIN = 'bench';
/** Some more, to share the machines between. */
export const MANY: readonly string[] = Array.from({ length: 50 }, (_, i) => `bench-${i}`);

/** All of it. */
export const WORKLOAD = CLASSES + [MAIN, ...MANY].map(deployment).join('');

interface DeploymentItem {
  readonly metadata: { readonly generation: number };
  readonly spec: { readonly template: { readonly spec: { readonly class: { readonly name: string } } } };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
  };
}

interface MachineItem {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: { readonly providerID?: string };
  readonly status?: { readonly currentStatus?: { readonly phase?: string } };
}

/** Asks for that many machines, waits until exactly those run, and resolves with the seconds it took. */
export async function scale(api: Api, replicas: number, name: string = MAIN): Promise<number> {
  return timed(async () => {
    await patchSpec(api, name, { replicas });
    await settled(api, name, replicas);
  });
}

/** Rolls all machines to the class that they do not have, and resolves with the seconds it took. */
export async function roll(api: Api, replicas: number): Promise<number> {
  const { spec } = await api.send<DeploymentItem>('GET', `${BASE}/machinedeployments/${MAIN}`);
  const name = spec.template.spec.class.name === 'first' ? 'second' : 'first';
  return timed(async () => {
    await patchSpec(api, MAIN, { template: { spec: { class: { name } } } });
    await settled(api, MAIN, replicas);
  });
}

/** Changes the spec of a MachineDeployment. */
export async function patchSpec(api: Api, name: string, spec: object): Promise<void> {
  await api.send('PATCH', `${BASE}/machinedeployments/${name}`, { spec });
}

/** Resolves when exactly so many machines of it run. Polled by GETs of one small object, which cost next to nothing; lists confirm. */
export async function settled(api: Api, name: string, replicas: number): Promise<void> {
  while (!(await isSettled(api, name, replicas)) || !(await isExactly(api, name, replicas))) await sleep(100);
}

/** The seconds that something takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return (performance.now() - startedMs) / 1_000;
}

async function isSettled(api: Api, name: string, replicas: number): Promise<boolean> {
  const { metadata, status = {} } = await api.send<DeploymentItem>('GET', `${BASE}/machinedeployments/${name}`);
  const { observedGeneration, updatedReplicas = 0, availableReplicas = 0 } = status;
  return (
    observedGeneration === metadata.generation &&
    (status.replicas ?? 0) === replicas &&
    updatedReplicas === replicas &&
    availableReplicas === replicas
  );
}

async function isExactly(api: Api, name: string, replicas: number): Promise<boolean> {
  const items = (await machinesOf(api)).filter(({ metadata }) => metadata.labels?.['app'] === name);
  return items.length === replicas && items.every(({ status }) => status?.currentStatus?.phase === 'Running');
}

/** All Machines, from the watch cache of the API server. */
export async function machinesOf(api: Api): Promise<readonly MachineItem[]> {
  return (await api.send<{ items: readonly MachineItem[] }>('GET', `${BASE}/machines?resourceVersion=0`)).items;
}
