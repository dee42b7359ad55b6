import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { parseManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import type { AccessAttributes } from '../kube/access-rules.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE, MACHINE_LEASE, MANAGER_LEASE } from '../leader/names.ts';
import { describeMissing, type Permission, permissionsOf, type Workload } from './permissions.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Of the shipped roles. */
const NAMESPACE = 'machinist';

const everything: Workload = {
  leases: new Set([MANAGER_LEASE, MACHINE_LEASE]),
  isElected: true,
  hasTarget: true,
  callsDrivers: true,
  isAutoscaled: true,
  isMirantis: false,
  isClusterAPI: false,
  isIronCoreLifecycle: false,
  namespace: NAMESPACE,
};
const manager = { ...everything, leases: new Set([MANAGER_LEASE]), callsDrivers: false };
const machine = { ...everything, leases: new Set([MACHINE_LEASE]) };

const scheduler = {
  ...everything,
  leases: new Set([IRONCORE_SCHEDULER_LEASE]),
  hasTarget: false,
  callsDrivers: false,
  isAutoscaled: false,
};
const lifecycle = { ...scheduler, isIronCoreLifecycle: true };

interface Role extends Manifest {
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** One line for each thing that is allowed. */
function lineOf({ verb, group, resource, subresource, namespace = '*', name = '*' }: AccessAttributes): string {
  return `${verb} ${group}/${resource}/${subresource ?? ''} ${namespace} ${name}`;
}

/** Everything that the roles of a shipped file grant, in those lines. */
function grantedBy(file: string): string[] {
  const manifests = parseManifests(readFileSync(join(ROOT, file), 'utf8'));
  return manifests
    .filter(({ kind }) => kind.endsWith('Role'))
    .flatMap((manifest) => {
      const { namespace } = manifest.metadata;
      return (manifest as Role).rules.flatMap(({ apiGroups, resources, resourceNames = [undefined], verbs }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((path) =>
            resourceNames.flatMap((name) =>
              verbs.map((verb) => {
                const [resource = '', subresource] = path.split('/');
                return lineOf({ verb, group, resource, subresource, namespace, name });
              }),
            ),
          ),
        ),
      );
    });
}

const filesOf = (permissions: readonly Permission[]): string[] => [...new Set(permissions.map(({ file }) => file))];

describe('what a process is to be allowed', () => {
  test.each([
    { layout: 'one process', workload: everything },
    { layout: 'owner controllers', workload: manager },
    { layout: 'front end', workload: { ...everything, isMirantis: true } },
    { layout: 'Cluster API', workload: { ...everything, isClusterAPI: true } },
    { layout: 'machine controllers', workload: machine },
    { layout: 'scheduler of IronCore', workload: scheduler },
    { layout: 'that with its pools and classes', workload: lifecycle },
    { layout: 'pools of IronCore', workload: { ...scheduler, leases: new Set([IRONCORE_POOLS_LEASE]) } },
    {
      layout: 'all of them',
      workload: { ...everything, leases: new Set([...everything.leases, ...scheduler.leases, IRONCORE_POOLS_LEASE]) },
    },
  ])('is exactly what the files that it names grant: $layout', ({ workload }) => {
    const permissions = permissionsOf(workload);

    const asked = permissions.map(({ attributes }) => lineOf(attributes));
    const granted = filesOf(permissions).flatMap(grantedBy);

    expect(asked.toSorted()).toEqual([...new Set(granted)].toSorted());
    expect(new Set(asked).size).toBe(asked.length);
  });

  test.each([
    { what: 'without leader election no Lease', workload: { ...everything, isElected: false }, without: 'leases' },
    { what: 'without a target no Node', workload: { ...everything, hasTarget: false }, without: 'nodes' },
    { what: 'without drivers no identity', workload: { ...everything, callsDrivers: false }, without: 'namespaces' },
    { what: 'without autoscalers no class', workload: { ...manager, isAutoscaled: false }, without: 'machineclasses' },
  ])('$what', ({ workload, without }) => {
    expect(permissionsOf(everything).map(({ attributes }) => attributes.resource)).toContain(without);
    expect(permissionsOf(workload).map(({ attributes }) => attributes.resource)).not.toContain(without);
  });

  test.each([
    { verb: 'patch', resource: 'machines', isNeeded: true },
    { verb: 'watch', resource: 'nodes', isNeeded: true },
    { verb: 'update', resource: 'leases', isNeeded: true },
    { verb: 'create', resource: 'events', isNeeded: false },
    { verb: 'watch', resource: 'leases', isNeeded: false },
    { verb: 'delete', resource: 'nodes', isNeeded: false },
  ])('$verb $resource keeps a process from leading: $isNeeded', ({ verb, resource, isNeeded }) => {
    const found = permissionsOf(everything).filter(
      ({ attributes }) => attributes.verb === verb && attributes.resource === resource,
    );

    expect(found.map(({ lost }) => lost === undefined)).toEqual(found.map(() => isNeeded));
    expect(found).not.toEqual([]);
  });

  test('of a process that deletes Machines under both Leases, needed for one of them, is needed', () => {
    const deletes = permissionsOf(everything).filter(
      ({ attributes: { verb, resource } }) => verb === 'delete' && resource === 'machines',
    );

    expect(deletes).toEqual([expect.objectContaining({ lost: undefined })]);
  });
});

describe('what is missing', () => {
  const pick = (workload: Workload, ...wanted: readonly string[]): Permission[] =>
    permissionsOf(workload).filter(({ attributes: { verb, resource } }) => wanted.includes(`${verb} ${resource}`));

  test('is one line that names the file to apply', () => {
    expect(describeMissing(pick(manager, 'create machinesets', 'patch machinesets', 'update leases'))).toBe(
      'the control cluster does not let us create, patch machinesets.machine.sapcloud.io in namespace machinist; ' +
        'patch machinesets/status.machine.sapcloud.io in namespace machinist; ' +
        'update leases.coordination.k8s.io machine-controller-manager in namespace machinist: apply deploy/rbac/control-manager.yaml',
    );
  });

  test('says what is lost when the process goes on, each file for itself', () => {
    expect(describeMissing(pick(machine, 'create events', 'delete nodes'))).toBe(
      'the control cluster does not let us create events.core in namespace machinist: apply deploy/rbac/control-machine-controller.yaml ' +
        '(without: Events are not written); the target cluster does not let us delete nodes.core: apply deploy/rbac/target.yaml ' +
        '(without: Nodes of deleted Machines stay)',
    );
  });

  test('is cut when it is nearly everything', () => {
    const text = describeMissing(permissionsOf(everything));

    expect(text).toMatch(/, and \d+ more: apply deploy\/rbac\/control\.yaml; .*apply deploy\/rbac\/target\.yaml$/);
    expect(text.length).toBeLessThan(1_500);
    expect(text).not.toContain('\n');
  });
});
