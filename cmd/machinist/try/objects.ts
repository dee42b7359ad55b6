import { readFileSync } from 'node:fs';
import path from 'node:path';

import { GROUP } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Secret } from '../../../pkg/apis/wire.ts';
import { parseYaml } from '../../../pkg/apis/yaml.ts';
import type { New } from '../../../pkg/kube/client/client.ts';
import { installation } from '../installation.ts';

/** Where everything is that has a namespace. */
export const NAMESPACE = 'machinist-try';
/** Name of the MachineDeployment, and how the names of its machines and Nodes begin. */
export const FLEET = 'machinist-try';
const CLASS = 'simulated';
export const MACHINES = 2;

/** Says of an object without a namespace who made it. Sent with its creation, so that it is there whatever ends the command. */
export const MARK = { 'app.kubernetes.io/managed-by': 'machinist-try' };
export const MARK_SELECTOR = 'app.kubernetes.io/managed-by=machinist-try';

/** Kinds without which the manager does not start. */
const PLURALS = ['machines', 'machinesets', 'machinedeployments', 'machineclasses'];
export const DEFINITIONS = PLURALS.map((plural) => `${plural}.${GROUP}`);

/** Whether the command has created an object that has no namespace. */
export function isMarked({ metadata }: KubeObject): boolean {
  return Object.entries(MARK).every(([name, value]) => metadata.labels?.[name] === value);
}

/** The definitions of the kinds, from the checkout or the package. */
export function definitions(): readonly New<KubeObject>[] {
  return PLURALS.map((plural) => {
    const file = path.join(installation(), 'crds', `${GROUP}_${plural}.yaml`);
    const definition = parseYaml(readFileSync(file, 'utf8')) as New<KubeObject>; // the generated file
    return { ...definition, metadata: { ...definition.metadata, labels: { ...definition.metadata.labels, ...MARK } } };
  });
}

export const namespaceObject: New<KubeObject> = { metadata: { name: NAMESPACE, labels: MARK } };

export const secret: New<Secret> = {
  metadata: { name: CLASS, namespace: NAMESPACE },
  type: 'Opaque',
  data: { userData: Buffer.from('#cloud-config\n').toString('base64') },
};

export const machineClass: New<MachineClass> = {
  metadata: { name: CLASS, namespace: NAMESPACE },
  provider: 'sim',
  providerSpec: { size: 'small', nodeLabels: MARK },
  secretRef: { name: CLASS, namespace: NAMESPACE },
};

const SELECTED = { 'machinist-try': 'example' };

export const machineDeployment: New<MachineDeployment> = {
  metadata: { name: FLEET, namespace: NAMESPACE },
  spec: {
    replicas: MACHINES,
    selector: { matchLabels: SELECTED },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: {
      metadata: { labels: SELECTED },
      spec: {
        class: { kind: 'MachineClass', name: CLASS, apiGroup: GROUP },
        // Nobody else's pods are to wait for a kubelet that does not exist.
        nodeTemplate: { spec: { taints: [{ key: 'machinist-try', value: 'simulated', effect: 'NoExecute' }] } },
      },
    },
  },
};
