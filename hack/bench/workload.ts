import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../control-plane/api.ts';

const BASE = '/apis/machine.sapcloud.io/v1alpha1/namespaces/machinist';
const DEPLOYMENT = `${BASE}/machinedeployments/bench`;

/** Two classes to roll between, and a MachineDeployment that asks for no machine yet. */
export const WORKLOAD = `
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
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: { name: bench, namespace: machinist }
spec:
  replicas: 0
  selector: { matchLabels: { app: bench } }
  strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 10%, maxUnavailable: 10% } }
  template:
    metadata: { labels: { app: bench } }
    spec: { class: { kind: MachineClass, name: first } }
`;

interface DeploymentItem {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
  };
}

interface MachineList {
  readonly items: readonly { readonly status?: { readonly currentStatus?: { readonly phase?: string } } }[];
}

/** Asks for that many machines, waits until exactly those run, and resolves with the seconds it took. */
export async function scale(api: Api, replicas: number): Promise<number> {
  return change(api, { replicas }, replicas);
}

/** Rolls all machines to the other class, and resolves with the seconds it took. */
export async function roll(api: Api, machineClass: 'first' | 'second', replicas: number): Promise<number> {
  return change(api, { template: { spec: { class: { name: machineClass } } } }, replicas);
}

/** Polled by GETs of one small object, so that looking costs the server next to nothing; one list confirms the end. */
async function change(api: Api, spec: object, replicas: number): Promise<number> {
  const startedMs = performance.now();
  await api.request(DEPLOYMENT, { method: 'PATCH', contentType: 'application/merge-patch+json', body: { spec } });
  for (;;) {
    if ((await isSettled(api, replicas)) && (await isExactly(api, replicas))) {
      return (performance.now() - startedMs) / 1_000;
    }
    await sleep(100);
  }
}

async function isSettled(api: Api, replicas: number): Promise<boolean> {
  const { metadata, status = {} } = (await api.request(DEPLOYMENT)).body as DeploymentItem; // a MachineDeployment
  const { observedGeneration, updatedReplicas = 0, availableReplicas = 0 } = status;
  return (
    observedGeneration === metadata.generation &&
    (status.replicas ?? 0) === replicas &&
    updatedReplicas === replicas &&
    availableReplicas === replicas
  );
}

async function isExactly(api: Api, replicas: number): Promise<boolean> {
  const { items } = (await api.request(`${BASE}/machines?resourceVersion=0`)).body as MachineList; // a list
  return items.length === replicas && items.every((one) => one.status?.currentStatus?.phase === 'Running');
}
