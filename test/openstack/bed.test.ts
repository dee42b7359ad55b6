import { afterAll, expect, test } from '@jest/globals';

import { eventually } from '../expect/eventually.ts';
import { Bed } from './bed.ts';

const bed = await Bed.start();

afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});

test('the bed makes a server with an address, and keeps it when its services are killed', async () => {
  const { imageID, networkID } = bed.seeds;
  const { server } = await bed.user.call<{ server: { id: string } }>('nova', 'POST', '/v2.1/servers', {
    server: { name: 'one', flavorRef: '1', imageRef: imageID, networks: [{ uuid: networkID }] },
  });
  const active = async (): Promise<object> => {
    const seen = await bed.user.call<{ server: { status: string; addresses: object } }>(
      'nova',
      'GET',
      `/v2.1/servers/${server.id}`,
    );
    expect(seen.server.status).toBe('ACTIVE');
    return seen.server.addresses;
  };
  expect(await eventually(active)).toMatchObject({ network: [{ addr: expect.stringMatching(/^10\.0\./) }] });

  await Promise.all([bed.kill('nova'), bed.kill('neutron')]);
  await Promise.all([bed.revive('nova'), bed.revive('neutron')]);

  expect(await eventually(active)).toMatchObject({ network: [{ addr: expect.stringMatching(/^10\.0\./) }] });
});
