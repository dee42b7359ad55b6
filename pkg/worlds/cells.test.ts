import { expect, test } from '@jest/globals';

import { configFrom } from '../operator/config/config.ts';
import { WORLD_FLAGS } from './index.ts';

const BASE = { cells: 'shoot', 'cell-kubeconfig-secret': 'kubeconfig', 'control-kubeconfig': 'file' };

const configOf = (flags: Readonly<Record<string, string>>) =>
  configFrom(
    'machinist run',
    new Map(Object.entries({ ...BASE, ...flags }).map(([name, value]) => [name, [value]])),
    WORLD_FLAGS,
  );

test.each(['*,cluster-api', '*,mirantis', '*,cluster-api,mirantis'])(
  'cells may have controllers %s, and each has them',
  (controllers) => {
    const { cells } = configOf({ controllers });

    expect(cells?.of('ns', {}).controllers).toEqual(configOf({ controllers }).controllers);
  },
);

test.each([
  {
    flags: { controllers: '*,ironcore' },
    says: '--controllers: ironcore.scheduler is not supported with --cells, because pools and classes of IronCore belong to no namespace; run it in a process of its own, without --cells',
  },
  {
    flags: { controllers: '*,cluster-api', 'cell-kubeconfig-secret': '', 'target-kubeconfig': 'other' },
    says: '--controllers: cluster-api is not supported with --cells=shoot and --target-kubeconfig=other; set --cell-kubeconfig-secret, or --target-kubeconfig=none',
  },
  {
    flags: { controllers: '*,mirantis', 'cell-kubeconfig-secret': '', 'target-kubeconfig': 'other' },
    says: '--controllers: mirantis is not supported with --cells=shoot and --target-kubeconfig=other',
  },
  {
    flags: { 'ironcore-pool': 'p=unix:///p.sock' },
    says: '--ironcore-pool is not supported with --cells, because pools',
  },
  {
    flags: { controllers: '*,cluster-api', 'cluster-api-all-namespaces': 'true' },
    says: '--cluster-api-all-namespaces is not supported with --cells, which selects the namespaces; remove one of them',
  },
])('cells cannot have $flags', ({ flags, says }) => {
  expect(() => configOf(flags)).toThrow(says);
});
