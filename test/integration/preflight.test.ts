import { expect, test } from '@jest/globals';

import { applyManifests } from '../../hack/control-plane/apply.ts';
import type { Finding } from '../../cmd/machinist/preflight/findings.ts';
import type { Driver } from '../../pkg/driver/driver.ts';
import { serve } from '../drivers/served.ts';
import { Program } from '../e2e/program.ts';
import { connect, namespace } from '../env/environment.ts';
import { FakeDriver } from '../fakes/driver.ts';
import { grant } from './shipped-roles.ts';

/** Each run starts a process, which takes a busy machine seconds. */
const TEST_MS = 180_000;

test(
  'machinist preflight says what is missing for a user, each with its remedy, and nothing when the shipped files were applied',
  async () => {
    await using ns = await namespace();
    await using driver = await serve(
      // only who it is is asked
      new FakeDriver() as unknown as Driver,
    );
    const connection = connect();
    const api = connection.api();
    const user = `preflight-${ns.name}`;
    await applyManifests(api, [
      {
        apiVersion: 'machine.sapcloud.io/v1alpha1',
        kind: 'MachineClass',
        metadata: { name: 'class-1', namespace: ns.name },
        providerSpec: {},
        provider: 'fake',
        secretRef: { name: 'secret-1', namespace: ns.name },
      },
    ]);
    const run = (...args: string[]): ReturnType<typeof Program.run> =>
      Program.run('machinist', [
        'preflight',
        `--target-kubeconfig=${connection.kubeconfig}`,
        `--namespace=${ns.name}`,
        ...args,
      ]);

    const admin = await run(`--driver=fake=unix://${driver.socket}.not-there`);
    const nobody = await run('-o', 'json', `--as=${user}`);
    await grant(api, 'control', ns.name, user);
    await grant(api, 'control-identity', 'default', user);
    await grant(api, 'target', 'default', user);
    await applyManifests(api, [
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'secret-1', namespace: ns.name } },
    ]);
    const granted = await run('-o', 'json', `--as=${user}`, `--driver=fake=unix://${driver.socket}`);
    await api.close();

    expect([admin.code, admin.stderr]).toEqual([1, '']);
    expect(admin.stdout).toMatch(/^OK +cluster +control: https:\/\/127\.0\.0\.1:\d+, Kubernetes v1\./m);
    expect(admin.stdout).toMatch(/^OK +clock /m);
    expect(admin.stdout).toMatch(/^OK +kinds /m);
    expect(admin.stdout).toMatch(/^OK +fields /m);
    expect(admin.stdout).toMatch(/^OK +permissions +control: the user of the kubeconfig has all required permissions/m);
    expect(admin.stdout).toMatch(/^OK +leases +machine-controller: not held/m);
    expect(admin.stdout).toMatch(/^FAIL +drivers +driver fake \(.*\) did not respond: .*\n +→ start the driver at /m);
    expect(admin.stdout).toMatch(/^FAIL +classes +class-1: Secret .*\/secret-1 does not exist.*\n +→ create it/m);

    expect(nobody.code).toBe(1);
    const missing = (JSON.parse(nobody.stdout) as { findings: readonly Finding[] }).findings;
    const remedies = missing.flatMap(({ check, remedy = '' }) => (check === 'permissions' ? [remedy] : []));
    expect(remedies.map((remedy) => /deploy\/rbac\/[\w-]+\.yaml/.exec(remedy)?.[0] ?? '').toSorted()).toEqual([
      'deploy/rbac/control-identity.yaml',
      'deploy/rbac/control.yaml',
      'deploy/rbac/target.yaml',
    ]);

    expect(JSON.parse(granted.stdout)).toMatchObject({ warnings: 0, failed: 0 });
    expect([granted.code, granted.stderr]).toEqual([0, '']);
  },
  TEST_MS,
);
