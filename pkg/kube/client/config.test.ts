import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { foreignEndpoint } from './config.ts';

const clusters = [{ name: 'c', cluster: { server: 'https://host:6443' } }];
const users = [{ name: 'u', user: { token: 't' } }];
const contexts = [
  { name: 'x', context: { cluster: 'c', user: 'u' } },
  { name: 'astray', context: { cluster: 'other', user: 'u' } },
];

test.each(['astray', 'none', undefined])(
  'a kubeconfig whose current context is %s is told how to mend',
  async (current) => {
    const content = JSON.stringify({ clusters, users, contexts, 'current-context': current });

    await expect(foreignEndpoint({ content, clock: new FakeClock() })).rejects.toMatchObject({
      name: 'ConfigError',
      message:
        'the current context of the kubeconfig refers to a cluster that it does not define; set current-context to a context with an existing cluster',
    });
  },
);
