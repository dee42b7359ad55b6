import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { machineSet } from '../../../test/builders.ts';
import { machineSetMetrics } from './metrics.ts';

const full = machineSet((s) => {
  s.spec = { ...s.spec, replicas: 3, minReadySeconds: 5, machineClass: { apiGroup: 'g', kind: 'k', name: 'n' } };
  s.status = {
    replicas: 4,
    readyReplicas: 2,
    availableReplicas: 2,
    fullyLabeledReplicas: 1,
    machineSetCondition: [{ type: 'Frozen', status: 'True' }],
    failedMachines: [
      { name: 'm', providerID: 'p', ownerRef: 'set-1', lastOperation: { state: 'Failed', type: 'Create' } },
    ],
  };
});

test('machine sets are shown under the names and labels of the original', async () => {
  const registry = new Registry();
  machineSetMetrics(registry, () => [full]).staleMachines.inc();

  const text = await registry.metrics();

  for (const line of [
    'mcm_machine_set_items_total 1',
    'mcm_machine_set_info{name="set-1",namespace="default",createdAt="1767225600",spec_machine_class_api_group="g",spec_machine_class_kind="k",spec_machine_class_name="n"} 1',
    'mcm_machine_set_info_spec_replicas{name="set-1",namespace="default"} 3',
    'mcm_machine_set_info_spec_min_ready_seconds{name="set-1",namespace="default"} 5',
    'mcm_machine_set_status_replicas{name="set-1",namespace="default"} 4',
    'mcm_machine_set_status_ready_replicas{name="set-1",namespace="default"} 2',
    'mcm_machine_set_status_available_replicas{name="set-1",namespace="default"} 2',
    'mcm_machine_set_status_fully_labelled_replicas{name="set-1",namespace="default"} 1',
    'mcm_machine_set_status_condition{name="set-1",namespace="default",condition="Frozen"} 1',
    'mcm_machine_set_failed_machines{name="set-1",namespace="default",failed_machine_name="m",failed_machine_provider_id="p",failed_machine_owner_ref="set-1",failed_machine_last_operation_state="Failed",failed_machine_last_operation_machine_operation_type="Create"} 1',
    'mcm_machine_stale_machines_total 1',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
});

test('nothing is left of a set that is gone, and nothing breaks on one with an empty spec', async () => {
  const registry = new Registry();
  let sets: MachineSet[] = [full];
  machineSetMetrics(registry, () => sets);
  await registry.metrics();
  sets = [];
  const empty = await registry.metrics();
  sets = [{ metadata: full.metadata, spec: {} }];

  expect(empty).not.toContain('name="set-1"');
  expect(await registry.metrics()).toContain('mcm_machine_set_info_spec_replicas{name="set-1",namespace="default"} 0');
});

test('a set shows how many machines it lacks, unless a MachineDeployment does so or it is being deleted', async () => {
  const registry = new Registry();
  const alone = (name: string, change: (set: MachineSet) => void = () => undefined): MachineSet =>
    machineSet((set) => {
      set.metadata.name = name;
      set.spec.replicas = 3;
      set.status = { availableReplicas: 1, observedGeneration: 0 };
      change(set);
    });
  const controller = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineDeployment', name: 'd', uid: 'u' };
  const sets = [
    alone('lacks-two'),
    alone('new', (set) => delete set.status),
    alone('many', ({ spec }) => (spec.replicas = 0)),
    alone('of-a-deployment', ({ metadata }) => (metadata.ownerReferences = [{ ...controller, controller: true }])),
    alone('of-another-kind', ({ metadata }) => {
      metadata.ownerReferences = [{ ...controller, kind: 'NodePool', controller: true }];
    }),
    alone('going', ({ metadata }) => (metadata.deletionTimestamp = '2026-01-01T00:00:00Z')),
  ];
  machineSetMetrics(registry, () => sets);

  const text = await registry.metrics();

  const shown = text.split('\n').filter((line) => line.startsWith('machinist_machine_set_missing_replicas{'));
  expect(shown.map((line) => line.replace(/^.*name="([^"]*)",namespace="default"\}/, '$1'))).toEqual([
    'lacks-two 2',
    'new 3',
    'many 0',
    'of-another-kind 2',
  ]);
});
