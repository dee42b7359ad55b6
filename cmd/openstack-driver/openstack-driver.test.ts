import { readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { parseCredentials } from '../../pkg/drivers/openstack/credentials.ts';
import { parseProviderSpec } from '../../pkg/drivers/openstack/provider-spec.ts';
import { userDataOf } from '../../pkg/drivers/spec-fields.ts';
import { openStackDriverCommand } from './openstack-driver.ts';

const PAGE = path.resolve(import.meta.dirname, '../../docs/operations/openstack.md');

test('the page about OpenStack names every flag of the driver, and no other', () => {
  const rows = [...readFileSync(PAGE, 'utf8').matchAll(/^\| `--([a-z-]+)` /gm)].map(([, name]) => name);

  const { options } = openStackDriverCommand();
  expect(new Set(rows)).toEqual(new Set(options.map(({ long }) => long?.slice(2))));
});

test('the page says which flags are required', () => {
  const rows = readFileSync(PAGE, 'utf8').matchAll(/^\| `--([a-z-]+)` +\| \*\*required\*\* /gm);

  const { options } = openStackDriverCommand();
  const required = options.filter(({ mandatory }) => mandatory).map(({ long }) => long?.slice(2));
  expect(new Set(Array.from(rows, ([, name]) => name))).toEqual(new Set(required));
});

test.each([
  { flag: '--page-size', why: 'a whole number of at least 1' },
  { flag: '--answer-timeout', why: 'a duration longer than 0' },
  { flag: '--build-timeout', why: 'a duration longer than 0' },
])('$flag cannot be 0', ({ flag, why }) => {
  const command = openStackDriverCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => {} });

  expect(() => command.parse([flag, '0'], { from: 'user' })).toThrow(`Expected ${why}`);
});

/** Rows of a table of the page: the names in the first column, which may stand for each other, and what the second one says. */
function rowsUnder(title: string): readonly { readonly names: readonly string[]; readonly required: string }[] {
  const [, section = ''] = new RegExp(`^## ${title}$([^]*?)^## `, 'm').exec(readFileSync(PAGE, 'utf8')) ?? [];
  return Array.from(section.matchAll(/^\| (`[^|]*?) +\| ([^|]*?) +\|/gm), ([, first = '', required = '']) => ({
    // What stands behind a colon, or behind the second "of", are members of the member.
    names: Array.from(
      first.replaceAll(/: [^`]*`|(?<=`networks`) of .*/g, '`').matchAll(/`([A-Za-z]+)`/g),
      ([, name = '']) => name,
    ),
    required,
  }));
}

const SPEC: Readonly<Record<string, unknown>> = {
  region: 'r',
  availabilityZone: 'z',
  keyName: 'k',
  flavorName: 'f',
  imageID: 'i',
  networkID: 'n',
  subnetIDs: ['s'],
  podNetworkCIDRs: ['10.0.0.0/8'],
  securityGroups: ['g'],
  tags: { 'kubernetes.io-cluster-c': '1', 'kubernetes.io-role-node': '1' },
  rootDiskSize: 10,
  rootDiskType: 't',
  dataVolumes: [{ name: 'd', size: 1 }],
  bootFromVolume: { enabled: true, volumeSize: 10 },
  floatingIP: { networkID: 'n' },
  useConfigDrive: true,
  serverGroupID: 's',
};
const SECRET: Readonly<Record<string, string>> = {
  authURL: 'https://keystone',
  username: 'u',
  password: 'p',
  domainName: 'd',
  tenantName: 't',
  caCert: 'c',
  clientCert: 'c',
  clientKey: 'k',
  insecure: 'true',
  userData: 'd',
};

test('the page says which members of the class are required', () => {
  const isTaken = (spec: unknown): boolean => {
    try {
      parseProviderSpec({ spec });
      return true;
    } catch {
      return false;
    }
  };
  const rows = rowsUnder('The class');

  expect(isTaken(SPEC)).toBe(true);
  expect(new Set(rows.flatMap(({ names }) => names))).toEqual(
    new Set([...Object.keys(SPEC), 'imageName', 'flavorID', 'serverGroupName', 'networks']),
  );
  for (const { names, required } of rows) {
    for (const name of names.filter((one) => one in SPEC)) {
      const without = { ...SPEC, [name]: undefined };
      expect({ name, required: isTaken(without) ? 'no' : 'yes' }).toEqual({ name, required });
    }
  }
});

test('the page says which keys of the Secret are required', () => {
  const isTaken = (texts: Readonly<Record<string, string>>): boolean => {
    const data = Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, Buffer.from(value)]));
    try {
      parseCredentials(data);
      userDataOf(data);
      return true;
    } catch {
      return false;
    }
  };
  const rows = rowsUnder('The Secret');

  expect(isTaken(SECRET)).toBe(true);
  expect(rows.flatMap(({ names }) => names)).toEqual(expect.arrayContaining(Object.keys(SECRET)));
  for (const { names, required } of rows) {
    for (const name of names.filter((one) => one in SECRET)) {
      const isOptional = isTaken({ ...SECRET, [name]: '' });
      expect({ name, isOptional }).toEqual({ name, isOptional: required === 'no' });
    }
  }
});
