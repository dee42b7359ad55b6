#!/usr/bin/env node
'use strict';
/*
 * What npm links as `machinist`, as `kubectl-machinist`, which kubectl runs as `kubectl machinist`, and as `kubectl_complete-machinist`,
 * which kubectl asks for completions. Written so that even an old Node can read it far enough to say what is wrong.
 */
var fs = require('fs');
var path = require('path');

var OLDEST_NODE = [22, 19];
var PROGRAM = path.join(__dirname, '../dist/npm/cmd/machinist/main.js');
var BOOTSTRAP = path.join(__dirname, '../hack/bootstrap.cjs');

var isCompletion = path.basename(process.argv[1]).indexOf('kubectl_complete-') === 0;
if (isCompletion) process.argv.splice(2, 0, '__complete');
if (fs.existsSync(BOOTSTRAP)) startCheckout();
else startPackage();

/** From its sources, by the Node that the checkout pins, in the folder of the caller. */
function startCheckout() {
  delete process.env.INIT_CWD;
  process.argv.splice(2, 0, 'machinist');
  require(BOOTSTRAP);
}

function startPackage() {
  var version = process.versions.node.split('.').map(Number);
  if (version[0] < OLDEST_NODE[0] || (version[0] === OLDEST_NODE[0] && version[1] < OLDEST_NODE[1])) {
    console.error(
      'machinist needs Node ' +
        OLDEST_NODE.join('.') +
        ' or newer; this is Node ' +
        process.versions.node +
        '. Install a newer Node (https://nodejs.org/en/download) and try again, or run the command in the image of Machinist.',
    );
    process.exit(1);
  }
  var compileCache = require('module').enableCompileCache;
  if (compileCache !== undefined) compileCache();
  void import(require('url').pathToFileURL(PROGRAM).href);
}
