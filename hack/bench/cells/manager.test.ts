import { expect, test } from '@jest/globals';

import { requestsIn } from './manager.ts';

test('requests are added up by method, over clusters, cells and answers', () => {
  const text = [
    'rest_client_requests_total{code="200",method="GET",host="a",cell="x"} 3',
    'rest_client_requests_total{code="404",method="GET",host="b"} 2',
    'rest_client_requests_total{code="200",method="PUT",host="a"} 7',
    'rest_client_request_latency_seconds_count{method="GET"} 99',
  ].join('\n');

  expect(requestsIn(text)).toEqual({ GET: 5, PUT: 7 });
});
