import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { stringify } from 'yaml';

import { API_VERSION } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import type { DemoOptions } from './command.ts';

/** Namespace of the demo's objects: the one of the shipped roles. */
export const NAMESPACE = 'machinist';
/** Name of the demo's MachineDeployment, and label value of its machines. */
export const WORKERS = 'workers';

/** To be read and copied from: no anchors, no folded lines. */
const PLAIN = { aliasDuplicateObjects: false, lineWidth: 0 };

/** Writes the demo's objects as YAML files and returns the paths of those to apply first. */
export function writeManifests(directory: string, options: DemoOptions, userData: string): readonly string[] {
  const folder = path.join(directory, 'manifests');
  mkdirSync(folder, { recursive: true });
  const write = (name: string, ...objects: readonly unknown[]): string => {
    const file = path.join(folder, name);
    writeFileSync(file, objects.map((object) => stringify(object, PLAIN)).join('---\n'), { mode: 0o600 });
    return file;
  };
  const start = [
    write('secret.yaml', secret(userData)),
    write('class-a.yaml', machineClass('workers-a', options.driver)),
    write('class-b.yaml', machineClass('workers-b', options.driver)),
    write('workers.yaml', machineDeployment(options.machines)),
  ];
  write('broken-class.yaml', {
    ...machineClass('workers-b', options.driver),
    providerSpec: { size: 42, color: 'blue' },
  });
  return start;
}

function secret(userData: string): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'workers-user-data', namespace: NAMESPACE },
    type: 'Opaque',
    stringData: { userData },
  };
}

function machineClass(name: string, provider: DemoOptions['driver']): Record<string, unknown> {
  return {
    apiVersion: API_VERSION,
    kind: 'MachineClass',
    metadata: { name, namespace: NAMESPACE },
    provider,
    providerSpec: {},
    secretRef: { name: 'workers-user-data', namespace: NAMESPACE },
    nodeTemplate: {
      capacity: { cpu: '1', gpu: '0', memory: '4Gi' },
      instanceType: `${provider}-small`,
      region: 'here',
      zone: 'here-1',
    },
  };
}

function machineDeployment(replicas: number): unknown {
  const labels = { demo: WORKERS };
  return {
    apiVersion: API_VERSION,
    kind: 'MachineDeployment',
    metadata: { name: WORKERS, namespace: NAMESPACE },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: {
        metadata: { labels },
        spec: {
          class: { kind: 'MachineClass', name: 'workers-a' },
          // Short, so that a killed machine is replaced while one watches.
          healthTimeout: '30s',
          creationTimeout: '5m',
          drainTimeout: '5m',
          nodeTemplate: { metadata: { labels: { 'demo.machinist/pool': WORKERS } } },
        },
      },
    },
  };
}
