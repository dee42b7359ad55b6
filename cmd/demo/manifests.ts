import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { stringify } from 'yaml';

import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { NODE_GROUP_MAX_ANNOTATION, NODE_GROUP_MIN_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { DemoOptions } from './command.ts';
import { ironCoreObjects } from './ironcore-objects.ts';
import { DEMO_CLUSTER, DEMO_TEMPLATE, firstMachine, providerObjects, type FirstMachine } from './provider-objects.ts';

/** Namespace of the demo's objects: the one of the shipped roles. */
export const NAMESPACE = 'machinist';
/** Name of the demo's MachineDeployment, and label value of its machines. */
export const WORKERS = 'workers';

/** The Deployment whose pods run on the machines; in the autoscaled demo, machines are made for them. */
export const WEB = { name: 'web', cpu: '300m', podsPerMachine: 3 };

/** To be read and copied from: no anchors, no folded lines. */
const PLAIN = { aliasDuplicateObjects: false, lineWidth: 0 };

/** Writes the demo's objects as YAML files and returns the paths of those to apply first. */
export function writeManifests(
  directory: string,
  options: DemoOptions,
  { userData, first }: { readonly userData: string; readonly first: FirstMachine },
): readonly string[] {
  const write = (name: string, ...objects: readonly object[]): string => writeManifest(directory, name, objects);
  const start = [
    ...(options.api === 'cluster-api' ? [write('cluster-api.yaml', ...providerObjects(NAMESPACE).objects)] : []),
    write('secret.yaml', secret(userData)),
    write('class-a.yaml', machineClass('workers-a', options)),
    write('class-b.yaml', machineClass('workers-b', options)),
    write('workers.yaml', machineDeployment(options)),
    ...(hasPods(options) ? [write('web.yaml', web(options))] : []),
  ];
  if (options.api === 'cluster-api') write('first-machine.yaml', ...firstMachine(NAMESPACE, first));
  write('guarded-pod.yaml', ...guardedPod());
  write('broken-class.yaml', {
    ...machineClass('workers-b', options),
    providerSpec: { size: 42, color: 'blue' },
  });
  return start;
}

/** A pod that a PodDisruptionBudget keeps, on the Node whose name takes the place of NODE: there is no scheduler. */
function guardedPod(): readonly object[] {
  const metadata = { name: 'guarded', namespace: 'default', labels: { app: 'guarded' } };
  return [
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: { minAvailable: 1, selector: { matchLabels: metadata.labels } },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: {
        nodeName: 'NODE',
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'guarded', image: 'guarded' }],
      },
    },
  ];
}

/** Writes the definitions of the demo's provider of Cluster API and returns the path. */
export function writeDefinitions(directory: string): string {
  return writeManifest(directory, 'provider.yaml', providerObjects(NAMESPACE).definitions);
}

/** Writes Machines of IronCore, and what they need, and returns the path. */
export function writeIronCore(directory: string, machines: number): string {
  return writeManifest(directory, 'ironcore.yaml', ironCoreObjects(NAMESPACE, machines));
}

function writeManifest(directory: string, name: string, objects: readonly object[]): string {
  const folder = path.join(directory, 'manifests');
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, name);
  writeFileSync(file, objects.map((object) => stringify(object, PLAIN)).join('---\n'), { mode: 0o600 });
  return file;
}

function secret(userData: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'workers-user-data', namespace: NAMESPACE },
    type: 'Opaque',
    stringData: { userData },
  };
}

/** What classes call the driver that the manager asks. */
export function providerOf({ api, driver }: Pick<DemoOptions, 'api' | 'driver'>): string {
  return api === 'cluster-api' ? api : driver;
}

function machineClass(name: string, options: DemoOptions): Record<string, unknown> {
  const provider = providerOf(options);
  return {
    apiVersion: API_VERSION,
    kind: 'MachineClass',
    metadata: { name, namespace: NAMESPACE },
    provider,
    providerSpec: options.api === 'cluster-api' ? { clusterName: DEMO_CLUSTER, infrastructureRef: DEMO_TEMPLATE } : {},
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
function machineDeployment({ machines, autoscaler }: DemoOptions): object {
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
function hasPods({ autoscaler, driver }: DemoOptions): boolean {
  return autoscaler || driver === 'kwok';
}

/** How many pods fill so many machines. */
export function podsOn(machines: number): number {
  return machines * WEB.podsPerMachine;
}

/** Three of its pods fit on a machine of one core. */
function web({ autoscaler, machines }: DemoOptions): object {
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
