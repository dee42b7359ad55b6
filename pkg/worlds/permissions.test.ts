import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { parseManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import type { AccessAttributes } from '../kube/client/access-rules.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../kube/leader/names.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE } from './ironcore/controllers/leases.ts';
import { describeMissing } from '../operator/preflight/missing-grants.ts';
import { type Permission, permissionsOf as permissionsWith } from '../operator/preflight/permissions.ts';
import type { Workload } from '../operator/preflight/workload.ts';
import { WORLDS } from './served.ts';
import { configFrom } from '../operator/config/config.ts';
import { WORLD_FLAGS } from './index.ts';

const permissionsOf = (workload: Workload): readonly Permission[] => permissionsWith(workload, WORLDS);

const ROOT = join(import.meta.dirname, '../..');
/** Of the shipped roles. */
const NAMESPACE = 'machinist';

const everything: Workload = {
  leases: new Set([MANAGER_LEASE, MACHINE_LEASE]),
  isElected: true,
  hasTarget: true,
  callsDrivers: true,
  isAutoscaled: true,
  hasCells: false,
  controllers: new Set([]),
  of: configFrom('machinist run', new Map(), WORLD_FLAGS).of,
  namespace: NAMESPACE,
  leaseNamespace: NAMESPACE,
};
const cells = { ...everything, hasCells: true, hasTarget: false };
const apart = { ...everything, namespace: 'machines' };
const manager = { ...everything, leases: new Set([MANAGER_LEASE]), callsDrivers: false };
const withCells: Workload = { ...everything, hasCells: true, hasTarget: false, isAutoscaled: false };
const inCell = {
  hasCells: false,
  hasTarget: false,
  callsDrivers: false,
  ofNamedCells: 'cell',
  namespace: 'cell-a',
} as const;
const machine = { ...everything, leases: new Set([MACHINE_LEASE]) };

const scheduler = {
  ...everything,
  leases: new Set([IRONCORE_SCHEDULER_LEASE]),
  hasTarget: false,
  callsDrivers: false,
  isAutoscaled: false,
};
const lifecycle = { ...scheduler, controllers: new Set(['ironcore.lifecycle']) };

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

const bindings = ['machines-namespace', 'cell-namespace']
  .flatMap((file) => parseManifests(readFileSync(join(ROOT, `deploy/${file}.yaml`), 'utf8')))
  .filter(
    (manifest): manifest is Manifest & { readonly roleRef: { readonly name: string } } =>
      manifest.kind === 'RoleBinding',
  );

/** Everything that the roles of a shipped file grant, in those lines. */
function grantedBy(file: string): string[] {
  const manifests = parseManifests(readFileSync(join(ROOT, file), 'utf8'));
  return manifests
    .filter(({ kind }) => kind.endsWith('Role'))
    .flatMap((manifest) => {
      const { name: role } = manifest.metadata;
      // A ClusterRole holds where its binding is.
      const namespace =
        manifest.metadata.namespace ?? bindings.find((one) => one.roleRef.name === role)?.metadata.namespace;
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
    { layout: 'two namespaces', workload: apart },
    { layout: 'cells', workload: withCells },
    { layout: 'cells that are named', workload: { ...withCells, ofNamedCells: 'process' as const } },
    { layout: 'one of these', workload: { ...withCells, ...inCell } },
    { layout: 'owner controllers', workload: manager },
    { layout: 'front end', workload: { ...everything, controllers: new Set(['mirantis']) } },
    { layout: 'Cluster API', workload: { ...everything, controllers: new Set(['cluster-api']) } },
    { layout: 'cells', workload: cells },
    { layout: 'cells with Cluster API', workload: { ...cells, controllers: new Set(['cluster-api']) } },
    { layout: 'cells with the front end', workload: { ...cells, controllers: new Set(['mirantis']) } },
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

describe('what two files grant', () => {
  test.each([
    { resource: 'nodelabelpolicies', lost: 'node templates may set any label' },
    { resource: 'machineclasses', lost: undefined },
  ])('is asked for once, and missing in the first of them: $resource', ({ resource, lost }) => {
    const workload = { ...everything, controllers: new Set(['mirantis']) };

    const found = permissionsOf(workload).filter(
      ({ attributes }) => attributes.verb === 'watch' && attributes.resource === resource,
    );

    expect(found).toEqual([expect.objectContaining({ file: 'deploy/rbac/control.yaml', lost })]);
  });
});

test('Events about the Lease of a process that only serves pools are written where the Lease is', () => {
  const pools = { ...scheduler, leases: new Set([IRONCORE_POOLS_LEASE]), leaseNamespace: 'leases' };

  const events = permissionsOf(pools).filter(({ attributes }) => attributes.resource === 'events');

  expect(events.map(({ attributes }) => attributes.namespace)).toEqual(['leases', 'leases', undefined, undefined]);
});

describe('what is missing', () => {
  const pick = (workload: Workload, ...wanted: readonly string[]): Permission[] =>
    permissionsOf(workload).filter(({ attributes: { verb, resource } }) => wanted.includes(`${verb} ${resource}`));

  test('is one line that names the file to apply', () => {
    expect(describeMissing(pick(manager, 'create machinesets', 'patch machinesets', 'update leases'))).toBe(
      'missing permissions in the control cluster: create, patch machinesets.machine.sapcloud.io in namespace machinist; ' +
        'patch machinesets/status.machine.sapcloud.io in namespace machinist; ' +
        'update leases.coordination.k8s.io machine-controller-manager in namespace machinist: apply deploy/rbac/control-manager.yaml',
    );
  });

  test('says what is lost when the process goes on, each file for itself', () => {
    expect(describeMissing(pick(machine, 'create events', 'delete nodes'))).toBe(
      'missing permissions in the control cluster: create events.core in namespace machinist: apply deploy/rbac/control-machine-controller.yaml ' +
        '(without: Events are not recorded); missing permissions in the target cluster: delete nodes.core: apply deploy/rbac/target.yaml ' +
        '(without: Nodes of deleted Machines are not deleted)',
    );
  });

  test('in a namespace without Leases names the file with the binding too', () => {
    expect(describeMissing(pick(apart, 'create machinesets', 'update leases'))).toBe(
      'missing permissions in the control cluster: create machinesets.machine.sapcloud.io in namespace machines; ' +
        'update leases.coordination.k8s.io machine-controller-manager in namespace machinist; ' +
        'update leases.coordination.k8s.io machine-controller in namespace machinist: ' +
        'apply deploy/rbac/machines.yaml and deploy/machines-namespace.yaml',
    );
  });

  test('is cut when it is nearly everything', () => {
    const text = describeMissing(permissionsOf(everything));

    expect(text).toMatch(/, and \d+ more: apply deploy\/rbac\/control\.yaml; .*apply deploy\/rbac\/target\.yaml$/);
    expect(text.length).toBeLessThan(1_500);
    expect(text).not.toContain('\n');
  });
});
