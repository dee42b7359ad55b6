import type { Members } from '../api-server/json.ts';
import type { Given } from './row.ts';

const API = 'machine.sapcloud.io/v1alpha1';

/** A Machine to create. */
export function machine(name: string, more: Members = {}, metadata: Members = {}): Members {
  const spec = { class: { kind: 'MachineClass', name: 'pool' } };
  return { apiVersion: API, kind: 'Machine', metadata: { name, ...metadata }, spec, ...more };
}

const template = {
  metadata: { labels: { pool: 'a' } },
  spec: { class: { kind: 'MachineClass', name: 'pool' } },
};

/** A MachineSet to create. */
export function machineSet(name: string, spec: Members = {}, metadata: Members = {}): Members {
  return {
    apiVersion: API,
    kind: 'MachineSet',
    metadata: { name, ...metadata },
    spec: { replicas: 2, selector: { matchLabels: { pool: 'a' } }, template, ...spec },
  };
}

/** A MachineDeployment to create. */
export function deployment(name: string, spec: Members = {}): Members {
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: '20%' } };
  return {
    apiVersion: API,
    kind: 'MachineDeployment',
    metadata: { name },
    spec: { replicas: 2, selector: { matchLabels: { pool: 'a' } }, strategy, template, ...spec },
  };
}

/** A MachineClass to create. */
export function machineClass(name: string, more: Members = {}): Members {
  return {
    apiVersion: API,
    kind: 'MachineClass',
    metadata: { name },
    provider: 'sim',
    providerSpec: { zone: 'a' },
    ...more,
  };
}

/** A Node to create. */
export const node =
  (name: string, more: Members = {}, metadata: Members = {}) =>
  ({ prefix }: Given): Members => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `${prefix}${name}`, ...metadata },
    ...more,
  });

/** A Pod to create. */
export function pod(name: string, spec: Members = {}, metadata: Members = {}): Members {
  const containers = [{ name: 'c', image: 'none' }];
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec: { containers, ...spec } };
}
