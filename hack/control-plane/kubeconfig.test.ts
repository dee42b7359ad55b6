import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

import { kubeconfig } from './kubeconfig.ts';

const cluster = { url: 'https://127.0.0.1:20000', ca: 'CA\n' };

describe('a kubeconfig', () => {
  test('carries a client certificate inline', () => {
    const text = kubeconfig({ ...cluster, identity: { certificate: 'CERT\n', key: 'KEY\n' }, namespace: 'machines' });

    expect(parse(text)).toEqual({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'machinist', cluster: { server: cluster.url, 'certificate-authority-data': encoded('CA\n') } },
      ],
      users: [
        {
          name: 'machinist',
          user: { 'client-certificate-data': encoded('CERT\n'), 'client-key-data': encoded('KEY\n') },
        },
      ],
      contexts: [{ name: 'machinist', context: { cluster: 'machinist', user: 'machinist', namespace: 'machines' } }],
      'current-context': 'machinist',
    });
  });

  test('carries a token as text even if it looks like a number', () => {
    const text = kubeconfig({ ...cluster, identity: { token: '123456.0123456789012345' } });

    expect(parse(text)).toMatchObject({ users: [{ user: { token: '123456.0123456789012345' } }] });
  });
});

function encoded(text: string): string {
  return Buffer.from(text).toString('base64');
}
