import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { stringify } from 'yaml';

import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { NODE_GROUP_MAX_ANNOTATION, NODE_GROUP_MIN_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { DemoOptions } from './command.ts';

/** Namespace of the demo's objects: the one of the shipped roles. */
export const NAMESPACE = 'machinist';
/** Name of the demo's MachineDeployment, and label value of its machines. */
export const WORKERS = 'workers';

/** The Deployment whose pods run on the machines; in the autoscaled demo, machines are made for them. */
export const WEB = { name: 'web', cpu: '300m', podsPerMachine: 3 };

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
    write('workers.yaml', machineDeployment(options)),
    ...(hasPods(options) ? [write('web.yaml', web(options))] : []),
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

/** With the autoscaler, it begins without machines, and says by annotations how many there may be. */
function machineDeployment({ machines, autoscaler }: DemoOptions): unknown {
  const labels = { demo: WORKERS };
  const limits = { [NODE_GROUP_MIN_ANNOTATION]: '0', [NODE_GROUP_MAX_ANNOTATION]: String(machines) };
  return {
    apiVersion: API_VERSION,
    kind: 'MachineDeployment',
    metadata: { name: WORKERS, namespace: NAMESPACE, ...(autoscaler ? { annotations: limits } : {}) },
    spec: {
      replicas: autoscaler ? 0 : machines,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '10%', maxUnavailable: 0 } },
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

/** Whether pods belong to what is shown. */
export function hasPods({ autoscaler, driver }: DemoOptions): boolean {
  return autoscaler || driver === 'kwok';
}

/** How many pods fill so many machines. */
export function podsOn(machines: number): number {
  return machines * WEB.podsPerMachine;
}

/** Three of its pods fit on a machine of one core. */
function web({ autoscaler, machines }: DemoOptions): unknown {
  const labels = { app: WEB.name };
  const resources = { requests: { cpu: WEB.cpu, memory: '64Mi' } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: WEB.name, namespace: 'default' },
    spec: {
      replicas: autoscaler ? 0 : podsOn(machines),
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'web', image: 'web', resources }] },
      },
    },
  };
}
