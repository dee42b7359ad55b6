/** Jest sequencer: in the order of the projects, so that what a time is too short for are the last ones. */
export default class ProjectOrder {
  sort(tests) {
    return tests.toSorted((a, b) => numberOf(a) - numberOf(b));
  }

  shard(tests) {
    return tests;
  }

  allFailedTests(tests) {
    return tests;
  }

  cacheResults() {}
}

function numberOf(test) {
  return Number(test.context.config.displayName.name) || 0;
}
