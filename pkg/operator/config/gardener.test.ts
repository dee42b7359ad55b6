import { expect, test } from '@jest/globals';

import { parseFlags } from '../../../test/parse-flags.ts';

/*
 * The arguments that Gardener gives to the two programs of the original, word for word: an installation that has these Deployments changes
 * the image and nothing else. Sources: gardener/gardener, pkg/component/nodemanagement/machinecontrollermanager (v1.80 to v1.120).
 */
const KUBECONFIG = '/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig';
const MANAGER = [
  '--control-kubeconfig=inClusterConfig',
  '--machine-safety-overshooting-period=1m',
  '--namespace=shoot--dev--a',
  '--port=10258',
  '--safety-up=2',
  '--safety-down=1',
  `--target-kubeconfig=${KUBECONFIG}`,
  '--concurrent-syncs=30',
  '--kube-api-qps=150',
  '--kube-api-burst=200',
  '--v=3',
];
/** With flags of the time when this program looked after VMs too. */
const OLDER_MANAGER = [
  '--control-kubeconfig=inClusterConfig',
  '--delete-migrated-machine-class=true',
  '--machine-safety-apiserver-statuscheck-timeout=30s',
  '--machine-safety-apiserver-statuscheck-period=1m',
  '--machine-safety-orphan-vms-period=30m',
  '--machine-safety-overshooting-period=1m',
  '--namespace=shoot--dev--a',
  '--port=10258',
  '--safety-up=2',
  '--safety-down=1',
  `--target-kubeconfig=${KUBECONFIG}`,
  '--v=3',
];
const SIDECAR = [
  '--control-kubeconfig=inClusterConfig',
  '--machine-creation-timeout=20m',
  '--machine-drain-timeout=2h',
  '--machine-health-timeout=10m',
  '--machine-safety-apiserver-statuscheck-timeout=30s',
  '--machine-safety-apiserver-statuscheck-period=1m',
  '--machine-safety-orphan-vms-period=30m',
  '--namespace=shoot--dev--a',
  '--port=10259',
  `--target-kubeconfig=${KUBECONFIG}`,
  '--v=3',
];

const CLUSTERS = {
  controlKubeconfig: 'inClusterConfig',
  targetKubeconfig: KUBECONFIG,
  namespace: 'shoot--dev--a',
};

test('the arguments of Gardener for the manager are taken as they are, all of them with effect', async () => {
  const { config, warnings } = await parseFlags('machine-controller-manager', MANAGER);

  expect(warnings).toEqual([]);
  expect(config.clusters).toMatchObject(CLUSTERS);
  expect(config).toMatchObject({
    server: { port: 10258 },
    api: { qps: 150, burst: 200 },
    sets: { concurrency: 30 },
    safety: { up: 2, down: 1, overshootingPeriodMs: 60_000 },
    verbosity: 3,
  });
});

test('the arguments of older Gardeners are taken too, and what they no longer do is said', async () => {
  const { config, warnings } = await parseFlags('machine-controller-manager', OLDER_MANAGER);

  expect(config.clusters).toMatchObject(CLUSTERS);
  expect(warnings).toEqual([
    '--machine-safety-orphan-vms-period has no effect in machine-controller-manager',
    '--delete-migrated-machine-class is accepted for compatibility and has no effect',
  ]);
});

test('the arguments of Gardener for the sidecar are taken as they are, all of them with effect', async () => {
  const { config, warnings } = await parseFlags('machine-controller', SIDECAR);

  expect(warnings).toEqual([]);
  expect(config.clusters).toMatchObject(CLUSTERS);
  expect(config).toMatchObject({
    server: { port: 10259 },
    machine: { creationTimeoutMs: 1_200_000, drainTimeoutMs: 7_200_000, healthTimeoutMs: 600_000 },
    safety: { orphanVMsPeriodMs: 1_800_000, statusCheckPeriodMs: 60_000, statusCheckTimeoutMs: 30_000 },
    verbosity: 3,
  });
});
