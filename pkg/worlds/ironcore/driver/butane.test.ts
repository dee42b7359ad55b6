import { describe, expect, test } from '@jest/globals';

import { fillIn, ignitionOf, joinButane, parseButane } from './butane.ts';

const FCOS = { variant: 'fcos', version: '1.3.0' };

test.each([
  ['text that is no YAML', 'a: [', 'providerSpec.ignition: line 1, column 5:'],
  ['a list', '- a', 'providerSpec.ignition: must be a Butane config'],
  ['nothing', '# only this', 'providerSpec.ignition: expected a document'],
])('%s is refused', (_what, content, message) => {
  expect(() => parseButane(content)).toThrow(expect.objectContaining({ code: 'InvalidArgument' }));
  expect(() => parseButane(content)).toThrow(message);
});

describe('two configs that are joined', () => {
  test.each([
    ['a member that only one has', { a: 1 }, { b: 2 }, { a: 1, b: 2 }, { a: 1, b: 2 }],
    ['a member of both', { a: 1 }, { a: 2 }, { a: 1 }, { a: 2 }],
    ['lists', { a: [1] }, { a: [2] }, { a: [1, 2] }, { a: [2] }],
    ['a list and an empty one', { a: [1] }, { a: [] }, { a: [1] }, { a: [1] }],
    ['members of members', { a: { b: 1 } }, { a: { b: 2, c: 3 } }, { a: { b: 1, c: 3 } }, { a: { b: 2, c: 3 } }],
    ['a member that is empty in one', { a: '', b: 1 }, { a: 'x', b: '' }, { a: 'x', b: 1 }, { a: 'x', b: 1 }],
    ['members of different types', { a: [1] }, { a: 'x' }, { a: [1] }, { a: 'x' }],
  ])('%s', (_what, base, more, added, overridden) => {
    expect([joinButane(base, more, false), joinButane(base, more, true)]).toEqual([added, overridden]);
  });
});

describe('templates', () => {
  const values = { Hostname: 'm-1', UserData: ' #!/bin/sh\n{{ .Hostname }}\n' };

  test.each([
    ['the host name', '{{ .Hostname }}.local', 'm-1.local'],
    ['user data, in which nothing is replaced', '{{ .UserData }}', ' #!/bin/sh\n{{ .Hostname }}\n'],
    ['user data as the earlier provider had it', '{{ .UserData | indent 8 | trim }}', '#!/bin/sh\n{{ .Hostname }}'],
    ['dashes', '{{- .Hostname -}}', 'm-1'],
    ['text without any', 'a $& {b}', 'a $& {b}'],
  ])('%s', (_what, template, filled) => {
    expect(fillIn({ a: [{ b: template }], c: 1 }, values)).toEqual({ a: [{ b: filled }], c: 1 });
  });

  test.each(['{{ .Secret }}', '{{ env "HOME" }}', '{{ .Hostname | upper }}', '{{ }}'])('%s is refused', (template) => {
    expect(() => fillIn({ a: template }, values)).toThrow('is not supported, use {{ .Hostname }} or {{ .UserData }}');
  });
});

describe('the Ignition config', () => {
  test('has members in camel case, contents as data URLs, and its own version', () => {
    const butane = {
      ...FCOS,
      ignition: { timeouts: { http_response_headers: 5 } },
      passwd: { users: [{ name: 'core', ssh_authorized_keys: ['key'], no_create_home: true }] },
      storage: {
        disks: [{ device: '/dev/a', wipe_table: true, partitions: [{ size_mib: 1, start_mib: 2, type_guid: 'g' }] }],
        files: [
          { path: '/a', contents: { inline: 'a b' } },
          { path: '/b', contents: { source: 'https://b', verification: { hash: 'sha512-x' } } },
        ],
      },
    };

    expect(ignitionOf(butane)).toEqual({
      ignition: { version: '3.2.0', timeouts: { httpResponseHeaders: 5 } },
      passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['key'], noCreateHome: true }] },
      storage: {
        disks: [{ device: '/dev/a', wipeTable: true, partitions: [{ sizeMiB: 1, startMiB: 2, typeGuid: 'g' }] }],
        files: [
          { path: '/a', contents: { source: 'data:,a%20b' } },
          { path: '/b', contents: { source: 'https://b', verification: { hash: 'sha512-x' } } },
        ],
      },
    });
  });

  test('has contents in base64 where that is shorter', () => {
    const inline = 'äöü{}"\n'.repeat(10);

    expect(ignitionOf({ ...FCOS, a: { inline } })).toHaveProperty(
      'a.source',
      `data:;base64,${Buffer.from(inline).toString('base64')}`,
    );
  });

  test.each([
    ['another variant', { variant: 'rhcos', version: '0.1.0' }, 'variant rhcos of version 0.1.0 is not supported'],
    ['another version', { variant: 'fcos', version: '9.0.0' }, 'use fcos 1.0.0, 1.1.0'],
    ['a short form', { ...FCOS, storage: { trees: [] } }, 'storage.trees is not supported'],
    ['a file of the host', { ...FCOS, a: [{ contents: { local: '/etc/shadow' } }] }, 'a[0].contents.local is not'],
    ['two contents', { ...FCOS, a: { inline: 'x', source: 'y' } }, 'a.inline: source is set too'],
    ['contents that are no text', { ...FCOS, a: { inline: 1 } }, 'a.inline: must be a string'],
  ])('%s is refused', (_what, butane, message) => {
    expect(() => ignitionOf(butane)).toThrow(`providerSpec.ignition: `);
    expect(() => ignitionOf(butane)).toThrow(message);
  });

  test.each([
    ['fcos', '1.5.0', '3.4.0'],
    ['flatcar', '1.0.0', '3.3.0'],
  ])('of %s %s is of version %s', (variant, version, expected) => {
    expect(ignitionOf({ variant, version })).toEqual({ ignition: { version: expected } });
  });
});
