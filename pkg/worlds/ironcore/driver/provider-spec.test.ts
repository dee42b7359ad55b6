import { expect, test } from '@jest/globals';

import { labelsIn, parseProviderSpec } from './provider-spec.ts';
import { IRONCORE_NAMESPACE_LABEL } from './tags.ts';

const REQUIRED = { image: 'registry/os:1', networkName: 'net', prefixName: 'prefix' };

test('a spec with what is required has defaults for the rest', () => {
  expect(parseProviderSpec(REQUIRED)).toEqual({
    ...REQUIRED,
    ignition: undefined,
    ignitionOverride: false,
    ignitionSecretKey: 'ignition.yaml',
    rootDisk: undefined,
    labels: {},
    dnsServers: [],
  });
});

test('a whole spec is read', () => {
  const spec = {
    ...REQUIRED,
    ignition: 'variant: fcos',
    ignitionOverride: true,
    ignitionSecretKey: 'config',
    rootDisk: { size: '50Gi', volumeClassName: 'fast', volumePoolName: 'pool' },
    labels: { 'shoot-name': 's', empty: '' },
    dnsServers: ['1.1.1.1'],
  };

  expect(parseProviderSpec(spec)).toEqual({ ...spec, ignition: { variant: 'fcos' } });
});

test.each([
  ['no image', { image: '' }, 'providerSpec.image: must be a non-empty string'],
  ['no network', { networkName: undefined }, 'providerSpec.networkName:'],
  ['no prefix', { prefixName: 3 }, 'providerSpec.prefixName:'],
  ['an unknown member', { imageName: 'x' }, 'providerSpec.imageName: unknown field'],
  ['an ignition that is no config', { ignition: 'x' }, 'providerSpec.ignition: must be a Butane config'],
  ['a key that is none', { ignitionSecretKey: 'a/b' }, 'providerSpec.ignitionSecretKey: must be a key of a Secret'],
  ['a disk without class', { rootDisk: { size: '1Gi' } }, 'providerSpec.rootDisk.volumeClassName:'],
  [
    'a disk of no size',
    { rootDisk: { size: '0', volumeClassName: 'c' } },
    'providerSpec.rootDisk.size: must be a quan',
  ],
  ['a disk of a size that is none', { rootDisk: { size: 'big', volumeClassName: 'c' } }, 'providerSpec.rootDisk.size:'],
  ['a label with a wrong key', { labels: { '-': 'x' } }, 'providerSpec.labels.-: must be a valid label key'],
  ['a label with a wrong value', { labels: { a: 'b c' } }, 'providerSpec.labels.a: must be a valid label value'],
  ['a label of ours', { labels: { [IRONCORE_NAMESPACE_LABEL]: 'x' } }, 'is set by the driver, use another key'],
  ['a name server that is none', { dnsServers: ['1.1.1.1', 'dns'] }, 'providerSpec.dnsServers[1]: must be an IP'],
  ['name servers that are no list', { dnsServers: '1.1.1.1' }, 'providerSpec.dnsServers: must be a list'],
])('%s is refused for good', (_what, change, message) => {
  const parse = () => parseProviderSpec({ ...REQUIRED, ...change });

  expect(parse).toThrow(expect.objectContaining({ code: 'InvalidArgument', terminal: true }));
  expect(parse).toThrow(message);
});

test.each([
  [{ labels: { a: 'b', c: 3 } }, { a: 'b' }],
  [{ labels: 'x' }, {}],
  [undefined, {}],
])('labels of %j, which may be wrong otherwise, are %j', (spec, labels) => {
  expect(labelsIn(spec)).toEqual(labels);
});
