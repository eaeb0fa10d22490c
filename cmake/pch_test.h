// Precompiled for every test file.
#pragma once

#include "pch.h"

#include <gtest/gtest.h>
