import { readFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

import type { Lease } from '../../../pkg/apis/wire.ts';
import type { TreeNode } from '../../../pkg/fleet/tree.ts';
import { ALERTS, NOT_CHECKED, pendingAlerts } from '../../../pkg/fleet/alerts.ts';
import { leaseFindings, machineFindings, processFindings } from './findings.ts';
import { parseSamples } from './samples.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const NOW_MS = Date.parse('2026-01-01T00:10:00Z');
const READY = '[+] caches ok\n[+] clusters ok: control: reachable\n[+] work ok\nreadyz check passed\n';
const BUILD = 'machinist_build_info{version="1.0.0"} 1\n';

function lease(spec: Lease['spec']): Lease {
  return { metadata: { name: 'machine-controller', uid: 'u', resourceVersion: '1' }, spec } as Lease;
}

test.each([
  { title: 'none', leases: [], status: 'fail', says: 'no Lease of a manager found' },
  { title: 'one that is not held', leases: [lease({})], status: 'fail', says: 'no leader; the Lease is not held' },
  {
    title: 'one that is renewed',
    leases: [
      lease({
        holderIdentity: 'pod_1',
        acquireTime: '2026-01-01T00:00:00Z',
        renewTime: '2026-01-01T00:09:40Z',
        leaseDurationSeconds: 15,
      }),
    ],
    status: 'ok',
    says: 'machine-controller: pod_1 has led for 10m',
  },
  {
    title: 'one that is not renewed any more',
    leases: [lease({ holderIdentity: 'pod_1', renewTime: '2026-01-01T00:09:29Z', leaseDurationSeconds: 15 })],
    status: 'fail',
    says: 'has not renewed the Lease for 31s; there is no leader',
  },
])('of Leases, $title: $status', ({ leases, status, says }) => {
  expect(leaseFindings({ leases }, NOW_MS)).toEqual([
    expect.objectContaining({ status, detail: expect.stringContaining(says) }),
  ]);
});

test.each([
  {
    title: 'that nobody holds',
    spec: {},
    want: ['no leader', 'a manager of many namespaces has its Leases in namespace managers'],
  },
  {
    title: 'that somebody renews',
    spec: { holderIdentity: 'pod_1', renewTime: '2026-01-01T00:09:50Z', leaseDurationSeconds: 15 },
    want: ['pod_1 has led'],
  },
])('beside a Lease $title, a manager with cells elsewhere is named only if nobody leads', ({ spec, want }) => {
  const found = leaseFindings({ leases: [lease(spec)], elsewhere: ['managers'] }, NOW_MS);

  expect(found.map(({ detail }) => detail)).toEqual(want.map((text) => expect.stringContaining(text)));
});

describe('what a process says', () => {
  const found = (readyz: string, metrics = BUILD, own = '1.0.0'): string[] =>
    processFindings([{ name: 'p', readyz, metrics }], own, NOW_MS).map(
      ({ check, status, detail, remedy }) =>
        `${status} ${check} ${detail}${remedy === undefined ? '' : ` → ${remedy}`}`,
    );

  test('is well', () => {
    expect(found(READY, `${BUILD}machinist_driver_up{provider="sim"} 1\n`)).toEqual([
      'ok processes p: ready',
      'ok clusters p: control: reachable',
      'ok work p: no work is held',
      'ok versions manager 1.0.0, this command 1.0.0',
      'ok drivers sim: connected',
      'ok zones no zone is stopped',
      'ok alerts no condition of an alert holds',
    ]);
  });

  test.each([
    { readyz: '[-] work failed: held since T\nreadyz check failed\n', want: 'fail work p: work: held since T → ' },
    { readyz: '[-] work failed: held since T\nreadyz check failed\n', want: 'fail processes p: not ready → ' },
    { readyz: '[!] work degraded: held since T\n', want: 'warn work p: work: held since T → ' },
    { readyz: '[!] clusters degraded: target: outage\n', want: 'warn clusters p: clusters: target: outage → ' },
    { readyz: '[!] credentials degraded: x\n', want: 'warn credentials p: credentials: x → ' },
    { readyz: '[!] lease a b degraded: standing by; x\n', want: 'warn leaders p: lease a b: standing by; x → ' },
    { readyz: '[!] caches degraded: without pods (not permitted to read)\n', want: 'warn permissions p: caches: ' },
    { readyz: '[-] work failed: missing permissions in X\n', want: 'fail permissions p: work: ' },
  ])('needs attention: $want', ({ readyz, want }) => {
    expect(found(readyz)).toContainEqual(expect.stringContaining(want));
  });

  test.each([
    { metrics: BUILD, own: '1.0.1', want: 'warn versions manager 1.0.0, this command 1.0.1 → install' },
    {
      metrics: `${BUILD}machinist_build_info{version="1.1.0"} 1\n`,
      own: '1.0.0',
      want: 'warn versions manager 1.0.0 and 1.1.0, this command 1.0.0 → wait',
    },
    {
      metrics: 'machinist_driver_up{provider="aws"} 0\n',
      own: '1.0.0',
      want: 'fail drivers aws: not connected → check',
    },
    {
      metrics: 'machinist_zone_stopped{cluster="target",provider="aws",zone="a"} 1\n',
      own: '1.0.0',
      want: 'warn zones zone a of aws: too many machines are unhealthy; none of them is replaced → ',
    },
    {
      metrics: 'machinist_drains_blocked{reason="error"} 2\n',
      own: '1.0.0',
      want: 'warn alerts MachinistDrainBlocked fires if this lasts 30m: reason=error → see docs/runbooks/drain-blocked.md',
    },
    {
      metrics: 'mcm_machine_current_status_phase{name="m"} -4\n',
      own: '1.0.0',
      want: 'ok alerts MachinistMachineStuck fires if this lasts 3h: name=m → see docs/runbooks/machine-stuck.md',
    },
  ])('shows in its metrics: $want', ({ metrics, own, want }) => {
    expect(found(READY, metrics, own)).toContainEqual(expect.stringContaining(want));
  });

  test('is not known when it does not answer, and one driver that is down is down for all', () => {
    const metrics = 'machinist_driver_up{provider="a"}';
    const findings = processFindings(
      [
        { name: 'p', error: 'refused' },
        { name: 'q', readyz: READY, metrics: `${metrics} 1\n` },
        { name: 'r', readyz: READY, metrics: `${metrics} 0\n` },
      ],
      '1.0.0',
      NOW_MS,
    );

    expect(findings).toContainEqual(expect.objectContaining({ status: 'warn', detail: 'p: no answer: refused' }));
    expect(findings.filter(({ check }) => check === 'drivers')).toMatchObject([{ status: 'fail' }]);
    expect(processFindings([{ name: 'p', error: 'refused' }], '1.0.0', NOW_MS)).toHaveLength(1);
  });
});

test('machines that need attention are counted, and the first ones named', () => {
  const machine = (name: string, attention: TreeNode['attention'], phase = 'Running'): TreeNode => {
    return { kind: 'Machine', name, namespace: 'n', attention, phase, children: [] };
  };
  const held = ['b', 'c', 'd', 'e'].map((name) => machine(name, 'attention', 'Unknown'));

  expect(machineFindings([machine('a', 'progressing')])).toEqual([
    { check: 'machines', status: 'ok', detail: '1 of 1 machines are Running' },
  ]);
  expect(machineFindings([machine('a', 'ok'), ...held])).toMatchObject([
    {
      status: 'warn',
      detail: '1 of 5 machines are Running; attention: Machine b; Machine c; Machine d; and 1 more',
      remedy: 'machinist tree',
    },
  ]);
  const frozen: TreeNode = { ...machine('s', 'attention'), kind: 'MachineSet', children: [machine('a', 'ok')] };
  expect(machineFindings([frozen])).toMatchObject([
    { status: 'warn', detail: '1 of 1 machines are Running; attention: MachineSet s' },
  ]);
  expect(machineFindings({ error: 'no' })).toMatchObject([{ status: 'warn', detail: 'cannot be read: no' }]);
});

test('metrics are read in the format of Prometheus', () => {
  const text = '# HELP a b\na 1\nb{c="d\\"e",f="g\\\\h"} 2.5e3\n\nc_total{x="y z"} 3 1700000000\n';

  expect(parseSamples(text)).toEqual([
    { name: 'a', labels: {}, value: 1 },
    { name: 'b', labels: { c: 'd"e', f: 'g\\h' }, value: 2_500 },
    { name: 'c_total', labels: { x: 'y z' }, value: 3 },
  ]);
});

describe('alerts', () => {
  const { groups } = parse(readFileSync(path.join(ROOT, 'deploy/monitoring/alerts.yaml'), 'utf8')) as {
    groups: { rules: { alert: string; expr: string; for?: string; annotations: { runbook_url: string } }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  test('are those that Prometheus is given, with their times, pages and metrics', () => {
    const checked = new Set(ALERTS.map(({ alert }) => alert));
    expect([...checked, ...NOT_CHECKED].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
    for (const { alert, after, runbook, metric } of ALERTS) {
      const rule = rules.find((one) => one.alert === alert);
      expect([alert, rule?.for ?? '0s', rule?.annotations.runbook_url]).toEqual([
        alert,
        after,
        expect.stringContaining(`docs/runbooks/${runbook}.md`),
      ]);
      expect(rule?.expr).toContain(metric);
    }
  });

  test.each([
    { sample: 'machinist_cluster_outage_reason{reason="x"} 1', alert: 'MachinistClusterOutage' },
    { sample: 'machinist_cluster_outage_reason{reason="x"} 0', alert: undefined },
    { sample: 'machinist_kube_credentials_age_seconds 301', alert: 'MachinistCredentialsNotLoaded' },
    { sample: 'machinist_kube_credentials_age_seconds 300', alert: undefined },
    { sample: 'mcm_machine_current_status_phase{name="a"} -4', alert: 'MachinistMachineStuck' },
    { sample: 'mcm_machine_current_status_phase{name="a"} 1', alert: undefined },
    { sample: 'machinist_driver_retries_held{call="delete"} 1', alert: 'MachinistDeletionFailing' },
    { sample: 'machinist_driver_retries_held{call="create"} 1', alert: undefined },
    { sample: 'machinist_replacements_held{reason="grace"} 1', alert: undefined },
    { sample: 'machinist_replacements_held{reason="zone"} 1', alert: 'MachinistReplacementsHeld' },
    { sample: 'machinist_workqueue_oldest_waiting_seconds 301', alert: 'MachinistQueueTooOld' },
    { sample: 'machinist_cell_refused_workload_clusters{cell="a"} 2', alert: 'MachinistCellRefused' },
    {
      sample:
        'mcm_machine_deployment_info_spec_replicas{name="a"} 1\nmcm_machine_deployment_status_available_replicas{name="a"} 0',
      alert: 'MachinistReplicasUnavailable',
    },
    {
      sample:
        'mcm_machine_deployment_info_spec_replicas{name="a"} 1\nmcm_machine_deployment_status_available_replicas{name="a"} 1',
      alert: undefined,
    },
    {
      sample:
        'mcm_machine_deployment_info_spec_replicas{name="a"} 1\nmcm_machine_deployment_info_spec_paused{name="a"} 1',
      alert: undefined,
    },
    { sample: 'machinist_machine_set_missing_replicas{name="a"} 1', alert: 'MachinistReplicasUnavailable' },
    { sample: 'machinist_machine_set_missing_replicas{name="a"} 0', alert: undefined },
    { sample: 'machinist_work_held{waits_for="caches",of="target"} 1', alert: 'MachinistWorkHeld' },
    { sample: 'machinist_work_held{waits_for="driver",of="aws"} 1', alert: undefined },
    {
      sample: 'machinist_leader{lease="l"} 0\nmachinist_work_held{waits_for="caches",of="target"} 1',
      alert: undefined,
    },
    { sample: 'machinist_cell_shards 0\nmachinist_work_held{waits_for="caches",of="control"} 1', alert: undefined },
    {
      sample: 'machinist_cell_refused{cell="a"} 1\nmachinist_work_held{cell="a",waits_for="catch-up",of="target"} 1',
      alert: 'MachinistCellRefused',
    },
    {
      sample:
        'machinist_cluster_outage_reason{cluster="target",reason="x"} 1\nmachinist_work_held{waits_for="catch-up",of="target"} 1',
      alert: 'MachinistClusterOutage',
    },
    {
      sample: `machinist_orphan_vms_last_look_timestamp_seconds ${NOW_MS / 1_000 - 7_201}`,
      alert: 'MachinistOrphanLookOverdue',
    },
    { sample: `machinist_orphan_vms_last_look_timestamp_seconds ${NOW_MS / 1_000 - 7_199}`, alert: undefined },
  ])('$sample: $alert', ({ sample, alert }) => {
    expect(pendingAlerts(parseSamples(sample), NOW_MS).map((one) => one.alert)).toEqual(
      alert === undefined ? [] : [alert],
    );
  });
});
