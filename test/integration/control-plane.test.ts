import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { machineClasses } from '../../pkg/kube/client/resource.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession } from './kube-session.ts';

describe('the shared control plane', () => {
  let api: Api;

  beforeAll(() => {
    api = connect().api();
  });

  afterAll(() => api.close());

  test('serves all kinds of Machinist', async () => {
    const { body } = await api.request('/apis/machine.sapcloud.io/v1alpha1');

    const kinds = (body as { resources: { kind: string; name: string }[] }).resources
      .filter(({ name }) => !name.includes('/'))
      .map(({ kind }) => kind);
    expect(kinds.toSorted()).toEqual(['Machine', 'MachineClass', 'MachineDeployment', 'MachineSet', 'NodeLabelPolicy']);
  });

  test('gives each test a namespace of its own, in which pods can be created at once', async () => {
    await using one = await namespace();
    await using other = await namespace();

    const { status } = await api.request(`/api/v1/namespaces/${one.name}/pods`, {
      method: 'POST',
      body: { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'c' }] } },
    });

    expect(one.name).not.toBe(other.name);
    expect(status).toBe(201);
  });

  test('removes the namespace at the end of the test, with all that is in it, and tells those who watch', async () => {
    await using session = new KubeSession(connect());
    const seen = session.informer(machineClasses, {});
    await seen.waitForSync(session.signal);
    await using other = await namespace();
    const collections: string[] = [];
    let name = '';
    {
      await using mine = await namespace();
      name = mine.name;
      for (const ns of [name, other.name]) {
        const metadata = { name: 'held', finalizers: ['machine.sapcloud.io/machine-controller-manager'] };
        const type = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineClass' };
        const classes = `/apis/${type.apiVersion}/namespaces/${ns}/machineclasses`;
        const secrets = `/api/v1/namespaces/${ns}/secrets`;
        await api.send('POST', classes, { ...type, metadata, providerSpec: {} });
        await api.send('POST', secrets, { metadata });
        collections.push(classes, secrets);
      }
      await eventually(() => seen.get(`${name}/held`) !== undefined && seen.get(`${other.name}/held`) !== undefined);
    }

    const answers = await Promise.all([name, other.name].map((ns) => api.request(`/api/v1/namespaces/${ns}`)));
    expect(answers.map(({ status }) => status)).toEqual([404, 200]);
    const left = await Promise.all(collections.map((path) => api.send<{ items: unknown[] }>('GET', path)));
    expect(left.map(({ items }) => items.length)).toEqual([0, 0, 1, 1]);
    await eventually(() => seen.get(`${name}/held`) === undefined);
    expect(seen.get(`${other.name}/held`)).toBeDefined();
  });

  test('has a kubeconfig that kubectl understands', async () => {
    const { kubeconfig, programs, url } = connect();
    const args = ['--kubeconfig', kubeconfig, 'get', 'namespace', 'default', '-o', 'name'];

    const { stdout } = await promisify(execFile)(programs.kubectl?.path ?? '', args);

    expect(stdout.trim()).toBe('namespace/default');
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:2\d{4}$/);
  });

  test('writes kubeconfigs for any user', async () => {
    const connection = connect();
    const kubeconfig = await connection.kubeconfigFor({ user: 'machinist', groups: ['operators', 'on call, always'] });
    const args = ['--kubeconfig', kubeconfig, 'auth', 'whoami', '-o', 'json'];

    const { stdout } = await promisify(execFile)(connection.programs.kubectl?.path ?? '', args);

    const { userInfo } = (JSON.parse(stdout) as { status: { userInfo: object } }).status;
    expect(userInfo).toMatchObject({
      username: 'machinist',
      groups: ['operators', 'on call, always', 'system:authenticated'],
    });
  });
});
