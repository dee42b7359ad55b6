import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { machine, machineClass } from '../../../test/builders.ts';
import { machineMetrics, type MachineMetrics } from './metrics.ts';

function start(...machines: Machine[]): { registry: Registry; metrics: MachineMetrics; machines: Machine[] } {
  const registry = new Registry();
  const all = [...machines];
  return { registry, metrics: machineMetrics(registry, { list: () => all }), machines: all };
}

const named = (change: (m: ReturnType<typeof machine>) => void = () => undefined): Machine =>
  machine((m) => {
    m.metadata.labels['name'] = 'pool-1';
    m.spec.nodeTemplate = { metadata: { labels: { 'topology.kubernetes.io/zone': 'z-1' } } };
    change(m);
  });

describe('metrics of machines', () => {
  test('tell of each Machine, as the original does', async () => {
    const { registry } = start(
      machine((m) => {
        m.status.conditions = [
          { type: 'Ready', status: 'True' },
          { type: 'DiskPressure', status: 'False' },
          { type: 'A', status: 'Unknown' },
        ];
      }),
    );
    const text = await registry.metrics();

    expect(text).toContain('mcm_machine_items_total 1');
    expect(text).toContain('mcm_machine_current_status_phase{name="m-1",namespace="default"} 1');
    expect(text).toContain(
      'mcm_machine_info{name="m-1",namespace="default",createdAt="1767225600",spec_provider_id="sim:///m-1",spec_class_api_group="",spec_class_kind="MachineClass",spec_class_name="class-1",node_name="m-1"} 1',
    );
    expect(text).toContain('mcm_machine_status_condition{name="m-1",namespace="default",condition="Ready"} 1');
    expect(text).toContain('mcm_machine_status_condition{name="m-1",namespace="default",condition="DiskPressure"} 0');
    expect(text).toContain('mcm_machine_status_condition{name="m-1",namespace="default",condition="A"} 2');
  });

  test.each([
    { phase: 'Terminating', value: -4 },
    { phase: 'Failed', value: -3 },
    { phase: 'CrashLoopBackOff', value: -2 },
    { phase: 'Unknown', value: -1 },
    { phase: 'Pending', value: 0 },
    { phase: 'InPlaceUpdating', value: 0 },
    { phase: '', value: 0 },
    { phase: 'Running', value: 1 },
  ] as const)('count phase "$phase" as $value', async ({ phase, value }) => {
    const { registry } = start(
      machine((m) => {
        m.status.currentStatus.phase = phase;
      }),
    );

    expect(await registry.metrics()).toContain(
      `mcm_machine_current_status_phase{name="m-1",namespace="default"} ${value}`,
    );
  });

  test('forget a Machine that is gone', async () => {
    const { registry, machines } = start(machine());
    await registry.metrics();
    machines.length = 0;

    expect(await registry.metrics()).not.toContain('m-1');
  });

  test('survive a Machine that is nothing but a name', async () => {
    const { registry } = start({ metadata: { name: 'bare' } } as unknown as Machine);

    expect(await registry.metrics()).toContain('mcm_machine_info{name="bare"');
  });

  test('tell how long things took, in whole seconds', async () => {
    const { registry, metrics } = start();
    const labels = '{namespace="default",machine_deployment="pool-1",instance_type="small",zone="z-1"}';
    metrics.created(named(), machineClass(), 1_900);
    metrics.initialized(named(), machineClass(), 2_000);
    metrics.joined(named(), machineClass(), 3_000);
    metrics.deleted(named(), machineClass(), 4_000);
    metrics.drained(named(), 5_000, true);
    metrics.failedToJoin(named(), machineClass());

    const text = await registry.metrics();
    expect(text).toContain(`mcm_machine_create_duration_seconds${labels} 1`);
    expect(text).toContain(`mcm_machine_initialize_duration_seconds${labels} 2`);
    expect(text).toContain(`mcm_machine_join_duration_seconds${labels} 3`);
    expect(text).toContain(`mcm_machine_delete_duration_seconds${labels} 4`);
    expect(text).toContain('mcm_machine_drain_duration_seconds{namespace="default",machine_deployment="pool-1"} 5');
    expect(text).toContain(`mcm_machine_num_failed_join${labels} 1`);
    expect(text).toContain('machinist_machine_creation_duration_seconds_sum{provider="sim"} 1.9');
    expect(text).toContain('machinist_machine_join_duration_seconds_bucket{le="5",provider="sim"} 1');
    expect(text).toContain('machinist_machine_deletion_duration_seconds_bucket{le="1",provider="sim"} 0');
    expect(text).toContain('machinist_machine_drain_duration_seconds_sum{forced="true"} 5');
  });

  test('do not fail for a class without node template, nor without class', async () => {
    const { registry, metrics } = start();
    const bare = machineClass((c) => {
      delete (c as { nodeTemplate?: unknown }).nodeTemplate;
    });
    metrics.created(named(), bare, 1_000);
    metrics.deleted(named(), undefined, 1_000);

    expect(await registry.metrics()).toContain('instance_type="",zone="z-1"} 1');
  });

  test('count failures by their reason', async () => {
    const { registry, metrics } = start();
    metrics.failed('stale-node');

    expect(await registry.metrics()).toContain('machinist_machines_failed_total{reason="stale-node"} 1');
  });

  test('have no series of the original for a Machine without the name of its MachineDeployment', async () => {
    const { registry, metrics } = start();
    metrics.created(machine(), machineClass(), 1_000);

    const text = await registry.metrics();
    expect(text).not.toContain('mcm_machine_create_duration_seconds{');
    expect(text).toContain('machinist_machine_creation_duration_seconds_count{provider="sim"} 1');
  });
});
