import { describe, expect, test } from '@jest/globals';
import { connect, namespace } from '../env/environment.ts';

describe('the shared control plane', () => {
  test('serves', async () => {
    const api = connect().api();
    await using ns = await namespace();

    const answer = await api.request(`/api/v1/namespaces/${ns.name}`);

    expect(answer.status).toBe(200);
    await api.close();
  });
});
