import { expect, test } from '@jest/globals';

import { ignitionFor } from './ignition.ts';
import { parseProviderSpec } from './provider-spec.ts';

interface Ignition {
  readonly ignition: { readonly version: string };
  readonly storage: {
    readonly files: readonly { readonly path: string; readonly mode?: number; readonly contents: { source: string } }[];
  };
  readonly systemd: { readonly units: readonly { readonly name: string; readonly enabled: boolean }[] };
}

const REQUIRED = { image: 'i', networkName: 'n', prefixName: 'p' };
const USER_DATA = '\n#!/bin/sh\necho "100 % {{ not a template }}"\n\n';

function parsed(spec: object): Ignition {
  return JSON.parse(ignitionFor(parseProviderSpec({ ...REQUIRED, ...spec }), 'm-1', USER_DATA)) as Ignition;
}

function filesOf({ storage }: Ignition): Record<string, string> {
  return Object.fromEntries(
    storage.files.map(({ path, contents: { source } }) => {
      const [form = '', data = ''] = source.split(/,(.*)/s);
      return [path, form.endsWith(';base64') ? Buffer.from(data, 'base64').toString() : decodeURIComponent(data)];
    }),
  );
}

test('a machine gets its name, and user data that runs once', () => {
  const ignition = parsed({});

  expect(ignition.ignition).toEqual({ version: '3.2.0' });
  expect(filesOf(ignition)).toEqual({
    '/etc/hostname': 'm-1\n',
    '/var/lib/ironcore-cloud-config/init.sh': `${USER_DATA.trim()}\n`,
  });
  expect(ignition.storage.files.map(({ mode }) => mode)).toEqual([0o644, 0o755]);
  expect(ignition.systemd.units).toEqual([
    expect.objectContaining({
      name: 'cloud-config-init.service',
      enabled: true,
      contents: expect.stringContaining('ConditionPathExists=!/var/lib/ironcore-cloud-config/init.done'),
    }),
  ]);
});

test('name servers and files of the class come after them', () => {
  const ignition = 'storage: { files: [{ path: /a, contents: { inline: "{{ .Hostname }}" } }] }';

  expect(Object.entries(filesOf(parsed({ ignition, dnsServers: ['1.1.1.1', '::1'] }))).slice(2)).toEqual([
    ['/a', 'm-1'],
    ['/etc/systemd/resolved.conf.d/dns.conf', '[Resolve]\nDNS=1.1.1.1\nDNS=::1'],
  ]);
});

test('files of a class that overrides take the place of all', () => {
  const ignition = 'variant: flatcar\nversion: 1.0.0\nstorage: { files: [{ path: /a, contents: { inline: b } }] }';

  const whole = parsed({ ignition, ignitionOverride: true });

  expect([whole.ignition.version, filesOf(whole)]).toEqual(['3.3.0', { '/a': 'b' }]);
});
