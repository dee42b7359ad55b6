import type { Manifest } from '../../hack/control-plane/apply.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';

/** Namespace of the shipped roles, and of everything that these tests make. */
export const NAMESPACE = 'machinist';
/** The Secret that all classes name unless told otherwise. */
export const USER_DATA_SECRET = 'user-data';
/** The MachineClass that all machines have unless told otherwise. */
export const CLASS = 'class-a';

/** Short where a test waits for it, long where only a defect would reach it. */
const TIMEOUTS = { healthTimeout: '20s', creationTimeout: '5m', drainTimeout: '5m' };

/** A Secret with this user data. */
export function userDataSecret(userData: string, name = USER_DATA_SECRET): Manifest {
  const metadata = { name, namespace: NAMESPACE };
  return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', stringData: { userData } };
}

/** A MachineClass of the local driver. */
export function machineClass(name = CLASS, change: Record<string, unknown> = {}): Manifest {
  return {
    apiVersion: API_VERSION,
    kind: 'MachineClass',
    metadata: { name, namespace: NAMESPACE },
    provider: 'local',
    providerSpec: {},
    secretRef: { name: USER_DATA_SECRET, namespace: NAMESPACE },
    ...change,
  };
}

/** A Machine by itself, as somebody writes it by hand. */
export function machine(name: string, className = CLASS): Manifest {
  return {
    apiVersion: API_VERSION,
    kind: 'Machine',
    metadata: { name, namespace: NAMESPACE },
    spec: { class: { kind: 'MachineClass', name: className }, ...TIMEOUTS },
  };
}

/** A MachineDeployment that rolls with one more machine, and with `maxUnavailable` less. */
export function machineDeployment(name: string, replicas: number, maxUnavailable = 0): Manifest {
  const labels = { pool: name };
  return {
    apiVersion: API_VERSION,
    kind: 'MachineDeployment',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable } },
      template: {
        metadata: { labels },
        spec: {
          class: { kind: 'MachineClass', name: CLASS },
          ...TIMEOUTS,
          nodeTemplate: { metadata: { labels: { 'example.org/pool': name } } },
        },
      },
    },
  };
}
